"""How replicas of a highly available control plane find each other, on a real API server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support import management as s
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, hands, rests
from tests.support.registry import Registry

from hcp.api.names import ANNOTATION_RESTART_DATE
from hcp.api.paths import at
from hcp.kube import Client
from hcp.kube import resources as k

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
    operator()
    await eventually(lambda: rests(admin, NAME), "a pass that writes nothing")
    assert (await api())["metadata"]["generation"] == before["metadata"]["generation"]
    assert not await beside()

    # Started anew for another reason, they look for one too.
    note = {"metadata": {"annotations": {ANNOTATION_RESTART_DATE: "2026-01-01"}}}
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", note)
    await eventually(beside, "new pods look for members")
    await admin.delete(k.HOSTEDCLUSTERS, NAME, "clusters")
    await eventually(lambda: gone(admin, NAME), "all is gone")
