"""The last phase: what the machines say, and one status patch when anything changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hcp.api import conditions as c
from hcp.api.names import ANNOTATION_RELEASE_VERSION
from hcp.kube.errors import NotFound
from hcp.kube.resources import NODEPOOLS
from hcp.kubevirt import repair_plan
from hcp.nodepool.aggregate import cidr_conflicts, condition_of, machines_summary
from hcp.nodepool.scope import Object, Scope
from hcp.runtime import Result

# What nodes say of themselves is the word of a tenant: what is kept of it has bounds.
_WORD, _VERSIONS, _MESSAGE = 64, 100, 3000


async def observe(scope: Scope) -> Result | None:
    """Aggregate machines, nodes and the deployment into conditions."""
    watches = scope.tools.watches
    mine = watches.of_pool(watches.machines, scope.key)
    machines = [item for item in mine if item["metadata"]["namespace"] == scope.hosted]
    live = watches.deployments.get(scope.name, scope.hosted)
    for kind, source, word, missing in (
        (c.ALL_MACHINES_READY, "Ready", "ready", "WaitingForInfrastructure"),
        (c.ALL_NODES_HEALTHY, "NodeHealthy", "healthy", "WaitingForNodeRef"),
    ):
        summary = machines_summary(machines, source, word, missing)
        scope.set(kind, summary.ok, summary.reason, summary.message if not summary.ok else c.AS_EXPECTED)
    _ready(scope, live)
    _live_migratable(scope, machines)
    report_conflicts(scope, machines)
    reason, message = repair_plan.pool_message(watches.of_pool(watches.repairs, scope.key))
    if reason:
        scope.set(c.NODES_UNDER_REPAIR, True, reason, message)
    else:
        scope.drop(c.NODES_UNDER_REPAIR)
    scope.status["replicas"] = int(((live or {}).get("status") or {}).get("availableReplicas") or 0)
    scope.status["nodesInfo"] = {"nodeVersions": node_versions(machines)}
    return None


def report_conflicts(scope: Scope, machines: Sequence[Object]) -> None:
    """Say which machines (or nodes) have addresses in the guest's pod network."""
    conflicts = cidr_conflicts(machines, _cluster_networks(scope))
    if conflicts:
        text = "; ".join(conflicts)
        message = f"{text} collide with cluster-network cidr [{', '.join(_cluster_networks(scope))}]"
        scope.set(c.CIDR_CONFLICT, True, c.INVALID_CONFIGURATION, message[:_MESSAGE])
    else:
        scope.drop(c.CIDR_CONFLICT)


def _ready(scope: Scope, live: Object | None) -> None:
    check = scope.tools.watches.checks.get(scope.name, scope.hosted)
    allowed = condition_of(check, "RemediationAllowed") if check else None
    if allowed is not None and allowed.get("status") == "False":
        scope.set(c.READY, False, allowed.get("reason") or c.TOO_MANY_UNHEALTHY, allowed.get("message") or "")
        return
    found = condition_of(live, "Ready") if live else None
    if found is not None:
        status = found.get("status") == "True"
        scope.set(c.READY, status, found.get("reason") or c.AS_EXPECTED, found.get("message") or "")
    else:
        scope.set(c.READY, False, c.NOT_FOUND, "The machines of this pool have not been created yet")


def _live_migratable(scope: Scope, machines: Sequence[Object]) -> None:
    watches = scope.tools.watches
    names = {machine["metadata"]["name"] for machine in machines}
    items = [item for item in watches.vm_machines.list(scope.hosted) if item["metadata"]["name"] in names]
    lacking = [item for item in items if (condition_of(item, "VMLiveMigratable") or {}).get("status") == "False"]
    if not lacking:
        scope.set(c.KUBEVIRT_LIVE_MIGRATABLE, True, c.AS_EXPECTED)
        return
    summary = machines_summary(lacking, "VMLiveMigratable", "live migratable", "Unknown")
    message = summary.message.replace(f"of {len(lacking)} machines", f"of {len(items)} machines", 1)
    scope.set(c.KUBEVIRT_LIVE_MIGRATABLE, False, c.NODES_NOT_LIVE_MIGRATABLE, message)


def _cluster_networks(scope: Scope) -> list[str]:
    networks = (scope.cluster_spec.get("networking") or {}).get("clusterNetwork") or []
    return [str(entry["cidr"]) for entry in networks]


def node_versions(machines: Sequence[Object], *, healthy: str = "NodeHealthy") -> list[dict[str, Any]]:
    """How many ready and unready nodes run which version, told by Machines or, by their own condition, Nodes."""
    counts: dict[tuple[str, str], list[int]] = {}
    for machine in machines:
        kubelet = ((machine.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion")
        if not kubelet:
            continue
        metadata = machine["metadata"]
        told = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
        well = (condition_of(machine, healthy) or {}).get("status") == "True"
        key = told.get(ANNOTATION_RELEASE_VERSION, "")[:_WORD], kubelet.removeprefix("v")[:_WORD]
        counts.setdefault(key, [0, 0])[not well] += 1
    return [
        {
            "ocpVersion": release,
            "kubeletVersion": kubelet,
            "readyNodeCount": ready,
            "unreadyNodeCount": unready,
        }
        for (release, kubelet), (ready, unready) in sorted(counts.items())[:_VERSIONS]
    ]


async def write(scope: Scope) -> Result | None:
    """One metadata patch and one status patch, each only when something is different."""
    client, pools = scope.ctx.client, scope.tools.watches.pools
    known = scope.pool["metadata"].get("annotations") or {}
    changed = {key: value for key, value in scope.annotations.items() if known.get(key) != value}
    try:
        if changed:
            body: Object = {"metadata": {"annotations": changed}}
            pools.observe(await client.patch(NODEPOOLS, scope.name, scope.namespace, body))
        scope.status["conditions"] = scope.conditions
        before = scope.pool.get("status") or {}
        if scope.status != before:
            gone = {key: None for key in before if key not in scope.status}
            body = {"status": {**scope.status, **gone}}
            pools.observe(await client.patch(NODEPOOLS, scope.name, scope.namespace, body, subresource="status"))
    except NotFound:
        return None
    return None
