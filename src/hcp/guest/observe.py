"""What is true inside the guest: nodes, the parts we keep there, and both directions of the tunnel."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api import conditions as c
from hcp.errors import HcpError
from hcp.guest.objects import SYSTEM, Manifest
from hcp.kube import Client, Resource
from hcp.kube.resources import DAEMONSETS, DEPLOYMENTS, NODES, PODS
from hcp.runtime.conditions import is_true
from hcp.runtime.workloads import all_available

Verdict = tuple[str, str, str]
# How much of a tenant's cluster is looked at.
SMALL_PAGE, MOST, MOST_PARTS = 20, 5_000, 500


@dataclass(frozen=True)
class View:
    """One look into the guest."""

    nodes: int
    ready_nodes: int
    waiting: tuple[str, ...]
    data_plane: Verdict
    control_plane: Verdict
    # Names of all DaemonSets there are.
    daemons: frozenset[str] = frozenset()


async def look(client: Client, wanted: Iterable[Manifest]) -> View:
    """List what matters and judge it."""
    (count, ready), daemons, deployments = await asyncio.gather(
        _count_nodes(client), _some(client, DAEMONSETS), _some(client, DEPLOYMENTS)
    )
    names = {(m["kind"], m["metadata"]["name"]) for m in wanted if m["kind"] in ("DaemonSet", "Deployment")}
    return View(
        count,
        ready,
        waiting(names, daemons, deployments, ready),
        await _data_plane(client, count),
        _control_plane(count, ready),
        frozenset(d["metadata"]["name"] for d in daemons),
    )


async def _count_nodes(client: Client) -> tuple[int, int]:
    """How many nodes there are and how many are ready; a page at a time, since nobody needs them all."""
    count = ready = 0
    async for page, _ in client.pages(NODES, size=SMALL_PAGE):
        count += len(page)
        ready += sum(is_true((n.get("status") or {}).get("conditions"), "Ready") for n in page)
        if count >= MOST:
            break
    return count, ready


async def _some(client: Client, resource: Resource, labels: str | None = None) -> list[Manifest]:
    """Objects of the system's namespace: ours are few, and a tenant may put any number beside them."""
    found: list[Manifest] = []
    async for page, _ in client.pages(resource, SYSTEM, labels, size=SMALL_PAGE):
        found += page
        if len(found) >= MOST_PARTS:
            break
    return found


def waiting(
    names: Iterable[tuple[str, str]],
    daemons: Iterable[Mapping[str, Any]],
    deployments: Iterable[Mapping[str, Any]],
    ready_nodes: int,
) -> tuple[str, ...]:
    """Parts that are not available, in words. Without a ready node none of them can be."""
    if not ready_nodes:
        return ("a ready node",)
    by_name = {("DaemonSet", d["metadata"]["name"]): d for d in daemons}
    by_name |= {("Deployment", d["metadata"]["name"]): d for d in deployments}
    late = []
    for kind, name in sorted(names):
        live = by_name.get((kind, name))
        if not all_available(live):
            late.append(f"{kind} {name}")
    return tuple(late)


async def _data_plane(client: Client, nodes: int) -> Verdict:
    """From here to the nodes: the log of an agent comes through the tunnel it serves."""
    if not nodes:
        return "Unknown", c.NO_WORKER_NODES, "The cluster has no nodes yet"
    try:
        pods = await _some(client, PODS, "k8s-app=konnectivity-agent")
        running = [p for p in pods if (p.get("status") or {}).get("phase") == "Running"]
        if not running:
            return "False", c.KONNECTIVITY_PODS_NOT_FOUND, "No konnectivity agent runs on any node"
        await client.logs(running[0]["metadata"]["name"], SYSTEM, tail=1, limit_bytes=1024)
    except HcpError as exc:
        return "False", c.LOGS_ACCESS_FAILED, f"The log of a konnectivity agent cannot be read: {exc}"
    return "True", c.AS_EXPECTED, "The control plane reaches the nodes"


def _control_plane(nodes: int, ready: int) -> Verdict:
    """From the nodes to here: a node is Ready only while its heartbeats arrive at the hosted API."""
    if not nodes:
        return "Unknown", c.NO_WORKER_NODES, "The cluster has no nodes yet"
    if ready:
        return "True", c.AS_EXPECTED, f"{ready} of {nodes} nodes report to the control plane"
    return "False", c.CONNECTION_CHECK_STALE, f"None of {nodes} nodes reports to the control plane"
