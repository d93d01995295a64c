"""What measures inside the cluster, from the first node on: its certificates."""

from __future__ import annotations

from hcp.hostedcluster import monitoring
from hcp.hostedcluster.leaves import existing, leaves
from hcp.hostedcluster.scope import Learned, Scope


async def run(scope: Scope) -> Learned | None:
    known = scope.tools.guests.state(scope.params.key).guest
    wanted = monitoring.leaves(scope.spec, scope.params.images)
    if scope.claim.foreign or not scope.startable or not wanted:
        return None
    begun = bool(existing(scope, (one.name for one in wanted)))
    if not begun and not (known and known.nodes):
        return None
    return Learned(made=tuple((await leaves(scope, wanted)).values()))
