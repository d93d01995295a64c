"""Images, releases and boot disks."""

from __future__ import annotations

from collections.abc import Iterator

from hcp.payload.component import Component


def components() -> Iterator[Component]:
    from dataclasses import replace

    from hcp.payload import disk, release
    from hcp.payload.image import image_component
    from hcp.payload.images import bases, hcp_image, tools, virt_manifests
    from hcp.payload.images.autoscaling import autoscaling_images
    from hcp.payload.images.conformance import conformance_images
    from hcp.payload.images.gateway import gateway_images
    from hcp.payload.images.login import login_images
    from hcp.payload.images.metallb import metallb_images
    from hcp.payload.images.monitoring import monitoring_images
    from hcp.payload.images.network import network_images
    from hcp.payload.images.olm import olm_images
    from hcp.payload.images.peers import peer_images
    from hcp.payload.images.static import MINORS, static_images
    from hcp.payload.images.storage import storage_images
    from hcp.payload.images.virt import cdi_images, virt_images
    from hcp.payload.rootfs import rootfs_component

    yield from tools.components()
    for rootfs, summary in bases.ALL.items():
        yield rootfs_component(rootfs, summary)
    for image in (*static_images(), *network_images(), *virt_images(), *cdi_images()):
        yield image_component(image)
    yield replace(rootfs_component(bases.TESTS, "what test images share: dig, curl, nc, a shell"), on_request=True)
    yield replace(
        rootfs_component(bases.ROOM, "Debian with Python, git and make, for `make test-fresh`"), on_request=True
    )
    optional = (
        *(*storage_images(), *olm_images(), *login_images(), *monitoring_images()),
        *(*autoscaling_images(), *metallb_images(), *peer_images(), *gateway_images()),
    )
    for image in (*conformance_images(), *optional):
        yield replace(image_component(image), on_request=True)
    yield from virt_manifests.components()
    yield from hcp_image.components()
    yield from disk.components(MINORS)
    yield from release.components(MINORS)
