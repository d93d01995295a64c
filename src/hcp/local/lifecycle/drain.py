"""Emptying a node before it goes, by evictions, so that budgets of whoever runs there are kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from hcp.api.manifests import Object
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.errors import NotFound, TooManyRequests
from hcp.kube.resources import NODES, PODS

_PERIOD = 1.0
_MIRROR = "kubernetes.io/config.mirror"


async def drain(client: Client, node: str, patience: float, say: Callable[[str], None]) -> None:
    """No new pods, then none but those of DaemonSets; refused evictions are asked for again until patience ends."""
    try:
        await client.patch(NODES, node, None, {"spec": {"unschedulable": True}})
    except NotFound:
        return
    end = time.monotonic() + patience
    told: set[str] = set()
    while left := [pod for pod in await client.list(PODS, fields=f"spec.nodeName={node}") if moves(pod)]:
        if time.monotonic() > end:
            raise HcpError(
                f"Node {node} still has pods: {', '.join(sorted(map(_name, left))[:5])}",
                cause="a budget (PodDisruptionBudget) keeps them, or they take their time to end",
                hint="Try again later, or take the node away as it is with --force.",
            )
        for pod in left:
            why = await _evict(client, pod)
            if why and why not in told:
                told.add(why)
                say(f"  waiting: {why}")
        await asyncio.sleep(_PERIOD)


def moves(pod: Object) -> bool:
    """Whether a pod has to leave a node that is drained."""
    meta = pod["metadata"]
    owners = meta.get("ownerReferences") or ()
    done = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return not (done or _MIRROR in (meta.get("annotations") or {}) or any(o["kind"] == "DaemonSet" for o in owners))


async def _evict(client: Client, pod: Object) -> str:
    """Empty when it was accepted, else what is in the way."""
    meta = pod["metadata"]
    if meta.get("deletionTimestamp"):
        return ""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
    }
    try:
        await client.raw("POST", PODS.path(meta["namespace"], meta["name"], "eviction"), body=body)
    except NotFound:
        return ""
    except TooManyRequests as error:
        return f"{_name(pod)}: {error}"
    return ""


def _name(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
