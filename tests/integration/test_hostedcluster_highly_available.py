"""How replicas of a highly available control plane find each other, on a real API server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support import management as s
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, hands, rests
from tests.support.passes import a_pass
from tests.support.registry import Registry

from hcp.api.names import ANNOTATION_RESTART_DATE
from hcp.api.paths import at
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.runtime import workloads

NAME, NS = "spread", "clusters-spread"


async def test_members_on_the_own_node_are_preferred_and_pods_of_before_are_not_started_anew_for_it(
    admin: Client, operator: Callable[[], Running], image: str, registry: Registry
) -> None:
    operator()
    await s.create(admin, NAME, image, registry, controllerAvailabilityPolicy="HighlyAvailable")

    async def api() -> dict[str, Any]:
        return await admin.get_or_none(k.DEPLOYMENTS, "kube-apiserver", NS) or {}

    async def beside() -> bool:
        return bool(at(await api(), "spec.template.spec.affinity.podAffinity"))

    await eventually(beside, "API servers look for members", hands(admin, NS))
    front = await admin.get(k.SERVICES, "etcd-client", NS)
    assert front["spec"]["trafficDistribution"] == "PreferSameNode"

    # As an operator of before left it.
    made = await api()
    made["spec"]["template"]["spec"]["affinity"].pop("podAffinity")
    await Running.latest.stop()
    before = await admin.replace(made)
    members = await admin.get(k.STATEFULSETS, "etcd", NS)
    assert members["spec"]["template"]["spec"]["containers"][0].pop("lifecycle")
    at_once = await admin.replace(members)
    operator()
    await eventually(lambda: rests(admin, NAME), "a pass that writes nothing")
    assert (await api())["metadata"]["generation"] == before["metadata"]["generation"]
    assert not await beside()
    assert (await admin.get(k.STATEFULSETS, "etcd", NS))["metadata"]["generation"] == at_once["metadata"]["generation"]

    # Started anew for another reason, they look for one too.
    note = {"metadata": {"annotations": {ANNOTATION_RESTART_DATE: "2026-01-01"}}}
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", note)
    await eventually(beside, "new pods look for members")

    async def leaves_slowly() -> bool:
        live = await admin.get(k.STATEFULSETS, "etcd", NS)
        return "lifecycle" in live["spec"]["template"]["spec"]["containers"][0]

    await eventually(leaves_slowly, "new members leave slowly")
    await admin.delete(k.HOSTEDCLUSTERS, NAME, "clusters")
    await eventually(lambda: gone(admin, NAME), "all is gone")


async def test_in_an_upgrade_members_of_etcd_go_before_the_api_servers(
    admin: Client, operator: Callable[[], Running], image: str, registry: Registry, tmp_path: Path
) -> None:
    name, ns = "ordered", "clusters-ordered"
    operator()
    newer = await s.push_release(registry, tmp_path, "1.36.9")
    await s.create(admin, name, image, registry, controllerAvailabilityPolicy="HighlyAvailable")

    async def images() -> dict[str, str]:
        found = [*await admin.list(k.DEPLOYMENTS, ns), *await admin.list(k.STATEFULSETS, ns)]
        return {one["metadata"]["name"]: workloads.image(one) for one in found}

    async def made() -> bool:
        return {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} <= set(await images())

    async def members(new: int) -> None:
        live = await admin.get(k.STATEFULSETS, "etcd", ns)
        status = {
            "observedGeneration": live["metadata"]["generation"],
            **dict.fromkeys(("replicas", "readyReplicas", "availableReplicas"), 3),
            "updatedReplicas": new,
        }
        await admin.patch(k.STATEFULSETS, "etcd", ns, {"status": status}, subresource="status")

    await eventually(made, "it is made", hands(admin, ns))
    await s.report_ready(admin, ns)
    await members(3)
    old = await images()

    await admin.patch(k.HOSTEDCLUSTERS, name, "clusters", {"spec": {"release": {"image": newer}}})

    async def moved() -> set[str]:
        now = await images()
        return {one for one in now if now[one] != old[one]}

    async def etcd_moved() -> bool:
        return "etcd" in await moved()

    await eventually(etcd_moved, "etcd is moved")
    await members(1)
    async with a_pass("hostedcluster"):
        await admin.patch(k.HOSTEDCLUSTERS, name, "clusters", {"metadata": {"annotations": {"look": "again"}}})
    assert await moved() == {"etcd"}

    async def followed() -> bool:
        return "kube-apiserver" in await moved()

    await members(3)
    await eventually(followed, "the API servers follow")
    assert await moved() == {"etcd", "kube-apiserver"}
    await admin.delete(k.HOSTEDCLUSTERS, name, "clusters")
    await eventually(lambda: gone(admin, name), "all is gone")
