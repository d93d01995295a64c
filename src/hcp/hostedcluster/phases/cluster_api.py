"""Cluster and KubevirtCluster, where the platform has machines, and the rights of those who make them."""

from __future__ import annotations

import asyncio

from hcp.controlplane import capi
from hcp.hostedcluster.scope import Scope
from hcp.kube.errors import NotFound
from hcp.kube.resources import CAPI_CLUSTERS, KUBEVIRTCLUSTERS


async def run(scope: Scope) -> None:
    platform = scope.spec.get("platform") or {}
    if platform.get("type") != "KubeVirt":
        return
    await asyncio.gather(*(scope.cache.apply(o) for o in capi.bindings(scope.params)))
    credentials = bool((platform.get("kubevirt") or {}).get("credentials"))
    live, _ = await asyncio.gather(
        scope.cache.apply(capi.kubevirt_cluster(scope.params, credentials=credentials)),
        scope.cache.apply(capi.cluster(scope.params)),
    )
    if (live.get("status") or {}).get("ready") is not True:
        made = await scope.ctx.client.patch(
            KUBEVIRTCLUSTERS,
            scope.params.infra_id,
            scope.namespace,
            {"status": {"ready": True}},
            subresource="status",
        )
        scope.cache.informer(KUBEVIRTCLUSTERS).observe(made)


async def rest(scope: Scope) -> None:
    """Machines rest with the cluster."""
    live = scope.cache.get(CAPI_CLUSTERS, scope.params.infra_id, scope.namespace)
    if not scope.claim.ours or live is None or live["spec"].get("paused"):
        return
    try:
        await scope.ctx.client.patch(CAPI_CLUSTERS, scope.params.infra_id, scope.namespace, {"spec": {"paused": True}})
    except NotFound:
        return
