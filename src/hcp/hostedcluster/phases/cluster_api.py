"""Cluster and KubevirtCluster, where the platform has machines, and the rights of those who make them."""

from __future__ import annotations

import asyncio

from hcp.api.paths import at
from hcp.controlplane import capi
from hcp.hostedcluster.scope import Scope
from hcp.kube.resources import KUBEVIRTCLUSTERS
from hcp.runtime import hibernation


async def run(scope: Scope) -> None:
    platform = scope.spec.get("platform") or {}
    if platform.get("type") != "KubeVirt":
        return
    await asyncio.gather(*(scope.cache.apply(o) for o in capi.bindings(scope.params)))
    credentials = bool(at(platform, "kubevirt.credentials"))
    live, _ = await asyncio.gather(
        scope.cache.apply(capi.kubevirt_cluster(scope.params, credentials=credentials)),
        # Machines rest as long as a cluster does, and nobody takes those that come back for broken.
        scope.cache.apply(capi.cluster(scope.params, paused=hibernation.resting(scope.cluster))),
    )
    if at(live, "status.ready") is not True:
        made = await scope.ctx.client.patch(
            KUBEVIRTCLUSTERS,
            scope.params.infra_id,
            scope.namespace,
            {"status": {"ready": True}},
            subresource="status",
        )
        scope.cache.informer(KUBEVIRTCLUSTERS).observe(made)
