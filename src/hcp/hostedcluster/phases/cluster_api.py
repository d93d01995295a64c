"""Cluster and KubevirtCluster, where the platform has machines, and the rights of those who make them."""

from __future__ import annotations

import asyncio
import datetime as dt

from hcp.api import names
from hcp.api.paths import at
from hcp.controlplane import capi
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.resources import KUBEVIRTCLUSTERS, ROLEBINDINGS
from hcp.runtime import hibernation

# The address of a new cluster is mostly a moment away; when it comes later, Cluster API writes all it says of it anew.
PATIENCE = 10.0


async def run(scope: Scope) -> Learned | None:
    platform = scope.spec.get("platform") or {}
    if platform.get("type") != "KubeVirt":
        return None
    bindings, followers = capi.bindings(scope.params), scope.ctx.secret_followers
    # Where official managers gave way to ours it stays, with nobody in it.
    if followers or scope.cache.get(ROLEBINDINGS, names.SECRET_FOLLOWERS, scope.namespace):
        bindings.append(capi.secret_followers(scope.params, followers))
    await asyncio.gather(*(scope.cache.apply(o) for o in bindings))
    known = scope.cache.get(KUBEVIRTCLUSTERS, scope.params.infra_id, scope.namespace)
    if known is None and scope.params.api_endpoint is None and (left := _left(scope)) > 0:
        return Learned(again=left)
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
    return None


def _left(scope: Scope) -> float:
    """Seconds for which the address is waited for."""
    made = dt.datetime.fromisoformat(str(scope.cluster["metadata"]["creationTimestamp"]))
    return PATIENCE - (scope.now - made).total_seconds()
