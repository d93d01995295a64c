"""What is true inside the guest: nodes, the parts we keep there, and both directions of the tunnel."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hcp.api import conditions as c
from hcp.api.names import ROUTER_NAMESPACE
from hcp.api.paths import at
from hcp.api.versions import parse_version
from hcp.errors import HcpError
from hcp.guest import olm
from hcp.guest.monitoring import serving
from hcp.guest.monitoring.plan import NAMESPACE as MONITORING
from hcp.guest.objects import SYSTEM, Manifest
from hcp.guest.state import Part, Verdict
from hcp.guest.view import GuestView
from hcp.runtime.conditions import is_true
from hcp.runtime.workloads import all_available, available, rolled_out

# What all parts wait for.
READY_NODE = "a ready node"


@dataclass(frozen=True)
class Look:
    """What the view shows at this moment; two that are equal give the same status."""

    nodes: int
    ready_nodes: int
    waiting: tuple[str, ...]
    # Of each part we keep there, which spec the server has: another one than before may be somebody's change.
    parts: tuple[tuple[str, str, int], ...]
    agent: str
    workloads: tuple[Part, ...]
    kubelet: str
    # Catalogs of operators, by namespace and name.
    catalogs: tuple[str, ...] = ()
    # Whether kubeadmin has its Secret, and its rights.
    kubeadmin: tuple[bool, bool] = (False, False)
    # Whether there is any NetworkPolicy.
    policies: bool = False
    # How the API of metrics is.
    metrics_api: str = ""
    # The programs that read catalogs.
    olm: tuple[Part, ...] = ()

    def has(self, kind: str, name: str) -> bool:
        return any(part[:2] == (kind, name) for part in self.parts)


def look(view: GuestView, wanted: Sequence[Manifest]) -> Look:
    """Nothing is asked: the view is followed."""
    nodes = view.nodes.list()
    ready = sum(is_true(at(n, "status.conditions"), "Ready") for n in nodes)
    names = {(m["kind"], m["metadata"]["name"]) for m in wanted if _is_part(m)}
    daemons, deployments = view.daemons.list(), [*view.deployments.list(), *view.routers.list()]
    live = [("DaemonSet", one) for one in daemons] + [("Deployment", one) for one in deployments]
    live += [(kind, one) for kind, informer in view.monitors.items() for one in informer.list()]
    parts = sorted((kind, str(o["metadata"]["name"]), int(o["metadata"].get("generation") or 0)) for kind, o in live)
    running = sorted(p["metadata"]["name"] for p in view.agents.list() if _runs(p))
    by_name = {(kind, str(one["metadata"]["name"])): one for kind, one in live}
    late = waiting(names, by_name, ready)
    workloads = tuple(_part(kind, name, by_name.get((kind, name))) for kind, name in sorted(names))
    agent = running[0] if running else ""
    catalogs = sorted(f"{o['metadata'].get('namespace')}/{o['metadata']['name']}" for o in view.catalogs.list())
    kubeadmin = (bool(view.kubeadmin.list()), bool(view.administrators.list()))
    told = (agent, workloads, _oldest_kubelet(nodes), tuple(catalogs), kubeadmin)
    more = (bool(view.policies.list()), serving.told(view.metrics_api.list()))
    return Look(len(nodes), ready, late, tuple(parts), *told, *more, _readers(view, wanted))


def _readers(view: GuestView, wanted: Sequence[Manifest]) -> tuple[Part, ...]:
    """Only where they are wanted; what else a tenant runs beside them is not looked at."""
    if not any(m["kind"] == "Deployment" and m["metadata"].get("namespace") == olm.NAMESPACE for m in wanted):
        return ()
    return tuple(_part("Deployment", name, view.readers.get(name, olm.NAMESPACE)) for name in olm.PROGRAMS)


def _part(kind: str, name: str, live: Mapping[str, Any] | None) -> Part:
    some = live is not None and available(live) > 0
    return Part(kind, name, some, all_available(live), rolled_out(live))


def _oldest_kubelet(nodes: Iterable[Mapping[str, Any]]) -> str:
    found = {}
    for node in nodes:
        text = str(at(node, "status.nodeInfo.kubeletVersion") or "")
        with contextlib.suppress(HcpError):  # a node may say anything
            found[text] = parse_version(text)
    return min(found, key=lambda text: found[text], default="")


def _is_part(obj: Manifest) -> bool:
    """Without which no node is of use, the default ingress and monitoring; what else has its own namespaces is not."""
    here = obj["metadata"].get("namespace") in (SYSTEM, ROUTER_NAMESPACE, MONITORING)
    return obj["kind"] in ("DaemonSet", "Deployment", "StatefulSet") and here


def _runs(pod: Mapping[str, Any]) -> bool:
    return bool(at(pod, "status.phase") == "Running")


def waiting(
    names: Iterable[tuple[str, str]],
    by_name: Mapping[tuple[str, str], Mapping[str, Any]],
    ready_nodes: int,
) -> tuple[str, ...]:
    """Parts that are not available, in words. Without a ready node none of them can be."""
    if not ready_nodes:
        return (READY_NODE,)
    late = []
    for kind, name in sorted(names):
        live = by_name.get((kind, name))
        if not all_available(live):
            late.append(f"{kind} {name}")
    return tuple(late)


async def data_plane(view: GuestView, seen: Look) -> Verdict:
    """From here to the nodes: the log of an agent comes through the tunnel it serves, so it has to be asked for."""
    if not seen.nodes:
        return "Unknown", c.NO_WORKER_NODES, "The cluster has no nodes yet"
    if not seen.agent:
        return "False", c.KONNECTIVITY_PODS_NOT_FOUND, "No konnectivity agent runs on any node"
    try:
        await view.client.logs(seen.agent, SYSTEM, tail=1, limit_bytes=1024)
    except HcpError as exc:
        return "False", c.LOGS_ACCESS_FAILED, f"The log of a konnectivity agent cannot be read: {exc}"
    return "True", c.AS_EXPECTED, "The control plane reaches the nodes"


def control_plane(seen: Look) -> Verdict:
    """From the nodes to here: a node is Ready only while its heartbeats arrive at the hosted API."""
    if not seen.nodes:
        return "Unknown", c.NO_WORKER_NODES, "The cluster has no nodes yet"
    if seen.ready_nodes:
        return "True", c.AS_EXPECTED, f"{seen.ready_nodes} of {seen.nodes} nodes report to the control plane"
    return "False", c.CONNECTION_CHECK_STALE, f"None of {seen.nodes} nodes reports to the control plane"
