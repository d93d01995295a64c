"""A site whose administrator says where the images of releases are."""

from __future__ import annotations

from collections.abc import Callable

from tests.support import management as s
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, hands, says
from tests.support.registry import Registry

from hcp.api import conditions as c
from hcp.kube import Client
from hcp.kube import resources as k


async def test_a_release_and_its_images_are_found_where_the_administrator_has_them(
    admin: Client, operator: Callable[..., Running], image: str, registry: Registry
) -> None:
    source, mirror = "registry.source.invalid/team", "mirror.site.invalid/other"
    operator(registry_overrides={source: f"{registry.host}/hcp", f"{registry.host}/hcp": mirror})
    await s.create(admin, "moved", image.replace(f"{registry.host}/hcp", source), registry)
    ns = "clusters-moved"
    await eventually(lambda: says(admin, "moved", c.VALID_RELEASE_IMAGE, "True"), "the release is read")
    etcd = await eventually(lambda: admin.get_or_none(k.STATEFULSETS, "etcd", ns), "etcd", hands(admin, ns))
    images = {one["image"].rpartition("/")[0] for one in etcd["spec"]["template"]["spec"]["containers"]}
    assert images == {mirror}
    await admin.delete(k.HOSTEDCLUSTERS, "moved", "clusters")
    await eventually(lambda: gone(admin, "moved"), "gone")
