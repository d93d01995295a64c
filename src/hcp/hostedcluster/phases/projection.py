"""The HostedControlPlane; everything else in the namespace is owned by it."""

from __future__ import annotations

from dataclasses import replace

from hcp.controlplane.hostedcontrolplane import hosted_control_plane
from hcp.hostedcluster.scope import Learned, Scope
from hcp.hostedcluster.translate import owner_of
from hcp.kube.resources import NODEPOOLS


async def run(scope: Scope) -> Learned:
    pools = scope.cache.list(NODEPOOLS, scope.params.cluster_namespace)
    mine = [pool["spec"] for pool in pools if pool["spec"].get("clusterName") == scope.params.name]
    p = replace(scope.params, autoscaled=any(spec.get("autoScaling") for spec in mine))
    live = await scope.cache.apply(hosted_control_plane(p, scope.cluster))
    return Learned(params={"owner": owner_of(live), "autoscaled": p.autoscaled})
