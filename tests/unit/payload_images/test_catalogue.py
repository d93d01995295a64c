"""The catalogue of images, disks and releases holds together."""

from __future__ import annotations

import subprocess

import pytest

from hcp.build_info import PACKAGE, source_files
from hcp.payload.images.static import MINORS
from hcp.payload.manifests import IMAGE_PLACEHOLDER
from hcp.payload.registry import default_registry
from hcp.payload.versions import recipe_dir

SCRIPTS = [
    "image-cdi/cloner_startup.sh",
    "image-virt/node-labeller.sh",
    "image-virt/virtqemud",
    "node-disk/root/usr/lib/hcp/firstboot",
    "node-disk/root/usr/lib/hcp/growroot",
    "node-disk/root/usr/lib/hcp/hostname",
]


def test_every_dependency_exists_and_has_a_key() -> None:
    registry = default_registry()
    for name in registry.names():
        assert registry.key(name)


def test_every_image_has_a_version() -> None:
    registry = default_registry()
    assert [name for name in registry.names() if not registry.get(name).version] == []


def test_building_everything_leaves_the_test_suite_out() -> None:
    registry = default_registry()
    left_out = set(registry.names()) - set(registry.usual())
    assert {"conformance-1.36", "image-agnhost", "image-pause-e2e", "rootfs-tests"} <= left_out
    assert {"metrics-server", "prometheus", "node-exporter", "release-1.36-monitoring"} <= left_out
    assert {"csi-sidecars", "csi-sanity", "image-csi-external-provisioner", "release-1.36-storage"} <= left_out
    assert not [dep for name in registry.usual() for dep in registry.get(name).deps if dep in left_out]


@pytest.mark.parametrize("minor", MINORS)
def test_a_release_depends_on_every_image_of_its_minor(minor: str) -> None:
    deps = default_registry().get(f"release-{minor}").deps
    assert {f"image-kube-apiserver-{minor}", f"image-kube-proxy-{minor}", f"node-disk-{minor}"} <= set(deps)
    assert not [dep for other in MINORS if other != minor for dep in deps if dep.endswith(f"-{other}")]


def test_the_manifests_of_kubevirt_and_cdi_find_their_images() -> None:
    from hcp.payload.builders import cdi, kubevirt

    names = default_registry().names()
    wanted = [*kubevirt._IMAGES.values(), *cdi._IMAGES.values()]
    assert [image for image in wanted if f"image-{image}" not in names] == []
    assert IMAGE_PLACEHOLDER == "hcp-image:"


def test_our_own_image_holds_code_and_no_recipes() -> None:
    names = [path.relative_to(PACKAGE).as_posix() for path in source_files()]
    assert "errors.py" in names
    assert "payload/disk.py" in names
    assert not [name for name in names if name.startswith("payload/recipes") or "__pycache__" in name]


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_valid(script: str) -> None:
    path = recipe_dir("") / script
    shell = path.read_text().splitlines()[0].removeprefix("#!")
    subprocess.run([shell, "-n", path], check=True)


@pytest.mark.parametrize("minor", MINORS)
def test_a_disk_brings_only_images_that_its_release_names(minor: str) -> None:
    from hcp.payload.disk_images import node_images

    registry = default_registry()
    images = set(node_images(minor).values())
    assert images <= set(registry.get(f"node-disk-{minor}").deps)
    assert images <= set(registry.get(f"release-{minor}").deps)
