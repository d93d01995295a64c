"""Which nodes have joined; what is not known (an operator that just started) stays as it was."""

from __future__ import annotations

from hcp.api.paths import at
from hcp.api.spec import cidrs
from hcp.nodepool.observed import OwnMachines
from hcp.nodepool.scope import Learned, Scope


async def run(scope: Scope) -> Learned | None:
    nodes = scope.tools.nodes(scope.hosted)
    if scope.cluster is None or (nodes is None and at(scope.pool, "status.replicas")):
        return None
    found = OwnMachines(
        nodes=nodes or [],
        expected=int(scope.spec.get("replicas") or 0),
        served=bool(scope.version or scope.seen.finished),
        cluster_networks=cidrs(scope.cluster_spec, "clusterNetwork"),
    )
    return Learned(seen={"machines": found})
