"""How each part of a hosted cluster is: what its ClusterOperators say. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hcp.api import conditions as c
from hcp.api.names import ROUTER_NAMESPACE
from hcp.api.versions import MAX_MINORS_BEHIND, kubernetes_minor, parse_version
from hcp.errors import HcpError
from hcp.guest import coredns, flannel, ingress, konnectivity, kube_proxy, network_policy, storage
from hcp.guest.monitoring import manifests as monitoring
from hcp.guest.monitoring import metrics_server, serving
from hcp.guest.monitoring.plan import NAMESPACE as MONITORING
from hcp.guest.objects import SYSTEM
from hcp.guest.platform.operators import Operator
from hcp.guest.state import GuestState, Part
from hcp.hostedcluster import login_status, olm_status, storage_status
from hcp.hostedcluster.observed import Observed
from hcp.hostedcluster.version import completed_version
from hcp.runtime import workloads
from hcp.runtime.conditions import Verdict

# Parts inside the guest that make up one operator.
INSIDE = {
    "csi-snapshot-controller": (storage.SNAPSHOTS,),
    "dns": (coredns.NAME,),
    "ingress": (ingress.NAME,),
    "monitoring": monitoring.PARTS,
    "network": (konnectivity.NAME, flannel.NAME, kube_proxy.NAME, network_policy.NAME),
}
# Parts that come and go with what tenants make: without them their operator works, but not all of it.
COMING = (network_policy.NAME,)
_RESOURCES = {"DaemonSet": "daemonsets", "Deployment": "deployments", "StatefulSet": "statefulsets"}
_PLACES = {"ingress": ROUTER_NAMESPACE, "monitoring": MONITORING}
_WELL: Verdict = (True, c.AS_EXPECTED, "All is well")
_NOT: Verdict = (False, c.AS_EXPECTED, "")


def found(cluster: Mapping[str, Any], seen: Observed) -> tuple[Operator, ...]:
    """One for each part that exists, in the order of their names."""
    reached = completed_version((cluster.get("status") or {}).get("version"))
    made = [*_control_plane(seen, reached), *_inside(seen, reached), *olm_status.operators(seen, reached)]
    if (volumes := _storage(seen, reached)) is not None:
        made.append(volumes)
    if (logins := login_status.operator(seen, reached)) is not None:
        made.append(logins)
    return tuple(sorted(made, key=lambda operator: operator.name))


def unwell(operators: Iterable[Operator]) -> list[str]:
    """Names of those that are not available."""
    return [operator.name for operator in operators if not operator.works]


def _control_plane(seen: Observed, reached: str) -> list[Operator]:
    first = workloads.rolled_out(seen.deployments.get("kube-apiserver"))
    upgradeable = _upgradeable(seen)
    made = []
    for name in seen.wanted_deployments:
        live = seen.deployments.get(name)
        newest = first and workloads.rolled_out(live)
        verdict = _workload(live, workloads.serving(live), newest)
        mine = upgradeable if name == "kube-apiserver" else _WELL
        made.append(Operator(name, *verdict, mine, seen.release.version if newest else reached))
    if seen.etcd is not None:
        verdict = _workload(seen.etcd, workloads.quorum(seen.etcd, seen.etcd_voters), _members(seen.etcd))
        available, progressing, degraded = verdict
        if seen.etcd_full:
            degraded = (True, c.ETCD_NO_SPACE, seen.etcd_full)
        version = seen.release.version if _members(seen.etcd) else reached
        made.append(Operator("etcd", available, progressing, degraded, _WELL, version))
    return made


def _members(etcd: Mapping[str, Any]) -> bool:
    ready, wanted = workloads.members(etcd)
    return ready >= wanted


def _workload(live: Mapping[str, Any] | None, answers: bool, newest: bool) -> tuple[Verdict, Verdict, Verdict]:
    available: Verdict = (True, c.AS_EXPECTED, "It answers") if answers else _late("its pods")
    progressing: Verdict = _NOT if newest else (True, c.ROLLING_OUT, "Its pods are being started or replaced")
    missing = int(((live or {}).get("status") or {}).get("unavailableReplicas") or 0)
    degraded: Verdict = (True, c.UNAVAILABLE_REPLICAS, f"{missing} replicas are missing") if missing else _NOT
    return available, progressing, degraded


def _inside(seen: Observed, reached: str) -> list[Operator]:
    guest = seen.guest or GuestState()
    made = []
    for name, members in INSIDE.items():
        parts = [part for part in guest.parts if part.name in members]
        if parts:
            operator = _of_parts(name, parts, guest, seen.release.version, reached)
            change = {"ingress": _from_outside, "monitoring": _from_the_api}.get(name)
            made.append(change(operator, seen) if change else operator)
    return made


def _from_the_api(operator: Operator, seen: Observed) -> Operator:
    """metrics-server is of use only once kube-apiserver reaches it."""
    there = any(name == metrics_server.NAME for *_, name in operator.related)
    how = seen.guest.metrics_api if seen.guest else ""
    if not there or not operator.works or how == serving.SERVED:
        return operator
    if how == serving.FOREIGN:
        text = f"{operator.available[2]}; of APIService {metrics_server.API} {how}"
        return replace(operator, available=(True, c.AS_EXPECTED, text))
    text = f"APIService {metrics_server.API} does not answer: {how or 'it is not announced yet'}"
    return replace(operator, available=(False, c.WAITING_FOR_AVAILABLE, text))


def _from_outside(operator: Operator, seen: Observed) -> Operator:
    """A router that nobody reaches works, but not as it should."""
    if not seen.ingress.problem or operator.degraded[0] is True:
        return operator
    text = f"{seen.ingress.problem}: {seen.ingress.todo}"
    return replace(operator, degraded=(True, seen.ingress.reason, text))


def _of_parts(name: str, parts: list[Part], guest: GuestState, version: str, reached: str) -> Operator:
    def named(late: Iterable[Part]) -> str:
        return ", ".join(f"{part.kind} {part.name}" for part in late)

    absent = [p for p in parts if not p.some and p.name not in COMING]
    short = [p for p in parts if not p.every and p not in absent]
    old = [p for p in parts if not p.newest]
    newest = not old and guest.version == version
    available: Verdict = (True, c.AS_EXPECTED, f"{named(parts)} are there")
    if not guest.ready_nodes:
        available = (False, c.NO_WORKER_NODES, "No node is ready to run it")
    elif absent:
        available = _late(named(absent))
    progressing: Verdict = _NOT if newest else (True, c.ROLLING_OUT, f"Pods are started or replaced: {named(old)}")
    degraded: Verdict = (True, c.UNAVAILABLE_REPLICAS, f"Some pods are missing: {named(short)}") if short else _NOT
    where = _PLACES.get(name, SYSTEM)
    related = tuple(("apps", _RESOURCES[part.kind], where, part.name) for part in parts)
    return Operator(name, available, progressing, degraded, _WELL, version if newest else reached, related)


def _storage(seen: Observed, reached: str) -> Operator | None:
    """None in a cluster whose release has no storage, or which wants none."""
    verdict = storage_status.verdict(seen.storage)
    if verdict is None or seen.storage is None or seen.storage.plan is None:
        return None
    works = verdict[0] is True
    available: Verdict = verdict if works else (False, verdict[1], verdict[2])
    running = workloads.rolled_out(seen.storage.controller)
    progressing: Verdict = _NOT if running else (True, c.ROLLING_OUT, "Its pods are being started or replaced")
    related = (("apps", "daemonsets", SYSTEM, storage.NODE),)
    version = seen.release.version if works and running else reached
    return Operator("storage", available, progressing, _NOT, _WELL, version, related)


def _late(what: str) -> Verdict:
    return False, c.WAITING_FOR_AVAILABLE, f"Waiting for {what}"


def _upgradeable(seen: Observed) -> Verdict:
    """An API server one minor newer must still be able to talk to every kubelet."""
    kubelet, version = seen.guest.kubelet if seen.guest else "", seen.release.version
    try:
        behind = kubernetes_minor(parse_version(version)) - kubernetes_minor(parse_version(kubelet))
    except HcpError:
        return _WELL
    if behind < MAX_MINORS_BEHIND:
        return _WELL
    return (
        False,
        c.KUBELETS_TOO_OLD,
        f"A node has kubelet {kubelet}, {behind} minor versions behind {version}: more than {MAX_MINORS_BEHIND} do not "
        "work. Upgrade node pools first",
    )
