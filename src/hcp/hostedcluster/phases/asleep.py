"""At the end of a pass over a cluster that sleeps: nobody asks its inside any more, and what still runs is counted."""

from __future__ import annotations

from dataclasses import replace

from hcp.hostedcluster import hibernation
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.resources import DEPLOYMENTS, STATEFULSETS


async def run(scope: Scope) -> Learned | None:
    if scope.claim.foreign:
        return None
    scope.tools.rest(scope.params.key)
    live = [one for kind in (DEPLOYMENTS, STATEFULSETS) for one in scope.cache.list(kind, scope.namespace)]
    return Learned(seen={"sleep": replace(scope.seen.sleep, left=hibernation.running(live))})
