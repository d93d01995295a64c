"""The HostedControlPlane; everything else in the namespace is owned by it."""

from __future__ import annotations

from dataclasses import replace

from hcp.controlplane.hostedcontrolplane import hosted_control_plane
from hcp.hostedcluster.scope import Learned, Scope
from hcp.hostedcluster.translate import owner_of


async def run(scope: Scope) -> Learned:
    p = replace(scope.params, autoscaled=any(pool["spec"].get("autoScaling") for pool in scope.pools))
    live = await scope.cache.apply(hosted_control_plane(p, scope.cluster))
    return Learned(params={"owner": owner_of(live), "autoscaled": p.autoscaled})
