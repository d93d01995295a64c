"""What nodes and controllers inside a hosted cluster would report, where a test has neither."""

from __future__ import annotations

import contextlib
from typing import Any

from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kube.errors import AlreadyExists

SYSTEM = "kube-system"
# Where our parts are.
NAMESPACES = (SYSTEM, "openshift-ingress", "openshift-monitoring")


async def join(guest: Client, name: str, kubelet: str = "v1.36.3") -> None:
    """A node that is Ready."""
    info = dict.fromkeys(
        (
            "architecture",
            "bootID",
            "containerRuntimeVersion",
            "kernelVersion",
            "kubeProxyVersion",
            "machineID",
            "operatingSystem",
            "osImage",
            "systemUUID",
        ),
        "",
    )
    status = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {**info, "kubeletVersion": kubelet}}
    with contextlib.suppress(AlreadyExists):
        await guest.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    await guest.patch(k.NODES, name, None, {"status": status}, subresource="status")


async def report_available(guest: Client, *, but: str = "") -> None:
    """All pods of our parts run, `but` those of one."""
    for live in [one for ns in NAMESPACES for one in await guest.list(k.DAEMONSETS, ns)]:
        have = 0 if live["metadata"]["name"] == but else 1
        counts = {"desiredNumberScheduled": 1, "currentNumberScheduled": 1, "numberMisscheduled": 0}
        counts |= dict.fromkeys(("numberReady", "numberAvailable", "updatedNumberScheduled"), have)
        await _write(guest, k.DAEMONSETS, live, counts)
    kinds = (k.DEPLOYMENTS, k.STATEFULSETS)
    for resource, live in [(kind, one) for kind in kinds for ns in NAMESPACES for one in await guest.list(kind, ns)]:
        have = 0 if live["metadata"]["name"] == but else live["spec"]["replicas"]
        counts = {"replicas": have, "updatedReplicas": have, "readyReplicas": have, "availableReplicas": have}
        await _write(guest, resource, live, counts)


async def _write(guest: Client, resource: k.Resource, live: dict[str, Any], counts: dict[str, Any]) -> None:
    body = {"status": {**counts, "observedGeneration": live["metadata"]["generation"]}}
    meta = live["metadata"]
    await guest.patch(resource, meta["name"], meta["namespace"], body, subresource="status")
