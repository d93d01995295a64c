"""The status of a NodePool as a pure function of what a pass has seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hcp.api import conditions as c
from hcp.api.names import ANNOTATION_RELEASE_VERSION
from hcp.api.paths import annotations_of, at, block, labels_of
from hcp.kubevirt import evacuation_plan, repair_plan
from hcp.kubevirt.evacuation_plan import Plan
from hcp.nodepool import joined
from hcp.nodepool.aggregate import cidr_conflicts, machines_summary
from hcp.nodepool.observed import Machines, Object, Observed, OwnMachines
from hcp.nodepool.scaling import held_back
from hcp.runtime.conditions import Verdict, condition_of, with_verdicts

NOT_MADE = "The machines of this pool have not been created yet"
# Cluster API rests with the cluster: what it said last is not true meanwhile.
_RESTS = "The hosted cluster sleeps, or is waking up: its machines are stopped, or their nodes have not reported yet"
_ASLEEP: dict[str, Verdict | None] = dict.fromkeys(
    (c.READY, c.ALL_MACHINES_READY, c.ALL_NODES_HEALTHY), (False, c.HIBERNATING, _RESTS)
)
# What nodes say of themselves is the word of a tenant: what is kept of it has bounds.
_WORD, _VERSIONS, _MESSAGE = 64, 100, 3000


def compute(pool: Mapping[str, Any], seen: Observed, now: str) -> Object:
    """The whole status; equal facts and an equal status before give an equal status."""
    before: Mapping[str, Any] = pool.get("status") or {}
    generation = int(at(pool, "metadata.generation", 0))
    verdicts: dict[str, Verdict | None] = {
        **seen.said,
        c.RECONCILIATION_ACTIVE: seen.pause.verdict(),
        c.RECONCILIATION_SUCCEEDED: _succeeded(seen.errors),
    }
    status: Object = dict(before)
    if isinstance(seen.machines, Machines):
        verdicts |= _machines(seen.machines)
        if (scales := seen.said.get(c.AUTOSCALING_ENABLED)) is not None:
            verdicts[c.AUTOSCALING_ENABLED] = held_back(scales, seen.machines)
        status["replicas"] = int(at(seen.machines.deployment, "status.availableReplicas", 0))
        status["nodesInfo"] = {"nodeVersions": node_versions(seen.machines.machines)}
        if seen.resting:
            verdicts |= _ASLEEP
            verdicts.pop(c.KUBEVIRT_LIVE_MIGRATABLE, None)
            status["replicas"] = 0
    elif seen.machines is not None:
        found = joined.judge(str(at(pool, "metadata.name")), seen.machines.expected, seen.machines.nodes)
        verdicts |= _own_machines(seen.machines, found)
        status["replicas"] = found.ready
        status["nodesInfo"] = {"nodeVersions": node_versions(found.nodes, healthy="Ready")}
    status["conditions"] = with_verdicts(before.get("conditions"), verdicts, generation, now)
    if seen.finished:
        status["version"] = seen.finished
    if platform := _platform(before, seen):
        status["platform"] = platform
    return status


def _succeeded(errors: Mapping[str, str]) -> Verdict:
    if errors:
        return False, c.RECONCILIATION_ERROR, "; ".join(f"{name}: {text}" for name, text in sorted(errors.items()))
    return True, c.RECONCILIATION_SUCCEEDED_REASON, "Reconciliation completed successfully"


def _platform(before: Mapping[str, Any], seen: Observed) -> Object:
    known = dict(block(before, "platform.kubeVirt"))
    if seen.credentials is not None:
        known["credentials"] = dict(seen.credentials)
    if seen.cache_name:
        known["cacheName"] = seen.cache_name
    whole = dict(block(before, "platform"))
    return {**whole, "kubeVirt": known} if known else whole


def _machines(seen: Machines) -> dict[str, Verdict | None]:
    verdicts: dict[str, Verdict | None] = {
        c.READY: _ready(seen),
        c.KUBEVIRT_LIVE_MIGRATABLE: _live_migratable(seen),
        c.CIDR_CONFLICT: conflict(seen.machines, seen.cluster_networks),
        c.NODES_UNDER_REPAIR: _repairs(seen.repairs),
        c.NODES_UNDER_EVACUATION: _leaving(seen.leaving),
    }
    for kind, source, word, missing in (
        (c.ALL_MACHINES_READY, "Ready", "ready", "WaitingForInfrastructure"),
        (c.ALL_NODES_HEALTHY, "NodeHealthy", "healthy", "WaitingForNodeRef"),
    ):
        summary = machines_summary(seen.machines, source, word, missing)
        verdicts[kind] = (summary.ok, summary.reason, summary.message if not summary.ok else c.AS_EXPECTED)
    return verdicts


def _own_machines(seen: OwnMachines, found: joined.Joined) -> dict[str, Verdict | None]:
    not_served = (False, c.NOT_FOUND, "There is no document for machines yet")
    return {
        c.ALL_NODES_HEALTHY: found.healthy,
        c.READY: found.pool_ready if seen.served else not_served,
        c.CIDR_CONFLICT: conflict(found.nodes, seen.cluster_networks),
    }


def _repairs(requests: Sequence[Object]) -> Verdict | None:
    reason, message = repair_plan.pool_message(requests)
    return (True, reason, message) if reason else None


def _leaving(plans: Mapping[str, Plan]) -> Verdict | None:
    reason, message = evacuation_plan.pool_message(plans)
    return (True, reason, message) if reason else None


def _ready(seen: Machines) -> Verdict:
    allowed = condition_of(seen.check, "RemediationAllowed")
    if allowed is not None and allowed.get("status") == "False":
        return False, allowed.get("reason") or c.TOO_MANY_UNHEALTHY, allowed.get("message") or ""
    found = condition_of(seen.deployment, "Ready")
    if found is None:
        return False, c.NOT_FOUND, NOT_MADE
    return found.get("status") == "True", found.get("reason") or c.AS_EXPECTED, found.get("message") or ""


def _live_migratable(seen: Machines) -> Verdict | None:
    if not seen.elsewhere:
        return None  # no machine could move anyway, and nobody can do anything about it
    lacking = [item for item in seen.vm_machines if _says(item, "VMLiveMigratable", "False")]
    if not lacking:
        return True, c.AS_EXPECTED, ""
    summary = machines_summary(lacking, "VMLiveMigratable", "live migratable", "Unknown")
    message = summary.message.replace(f"of {len(lacking)} machines", f"of {len(seen.vm_machines)} machines", 1)
    return False, c.NODES_NOT_LIVE_MIGRATABLE, message


def conflict(machines: Sequence[Object], networks: Sequence[str]) -> Verdict | None:
    """Which machines have addresses in the guest's pod network; nothing while none has."""
    found = cidr_conflicts(machines, networks)
    if not found:
        return None
    message = f"{'; '.join(found)} collide with cluster-network cidr [{', '.join(networks)}]"
    return True, c.INVALID_CONFIGURATION, message[:_MESSAGE]


def _says(item: Mapping[str, Any], kind: str, status: str) -> bool:
    return (condition_of(item, kind) or {}).get("status") == status


def node_versions(machines: Sequence[Object], *, healthy: str = "NodeHealthy") -> list[dict[str, Any]]:
    """How many ready and unready nodes run which version, told by Machines or, by their own condition, Nodes."""
    counts: dict[tuple[str, str], list[int]] = {}
    for machine in machines:
        kubelet = at(machine, "status.nodeInfo.kubeletVersion")
        if not kubelet:
            continue
        told = {**labels_of(machine), **annotations_of(machine)}
        key = told.get(ANNOTATION_RELEASE_VERSION, "")[:_WORD], kubelet.removeprefix("v")[:_WORD]
        counts.setdefault(key, [0, 0])[not _says(machine, healthy, "True")] += 1
    return [
        {
            "ocpVersion": release,
            "kubeletVersion": kubelet,
            "readyNodeCount": ready,
            "unreadyNodeCount": unready,
        }
        for (release, kubelet), (ready, unready) in sorted(counts.items())[:_VERSIONS]
    ]
