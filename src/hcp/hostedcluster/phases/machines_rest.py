"""Machines rest with a cluster that is paused."""

from __future__ import annotations

from hcp.hostedcluster.scope import Scope
from hcp.kube.errors import NotFound
from hcp.kube.resources import CAPI_CLUSTERS


async def run(scope: Scope) -> None:
    live = scope.cache.get(CAPI_CLUSTERS, scope.params.infra_id, scope.namespace)
    if not scope.claim.ours or live is None or live["spec"].get("paused"):
        return
    try:
        await scope.ctx.client.patch(CAPI_CLUSTERS, scope.params.infra_id, scope.namespace, {"spec": {"paused": True}})
    except NotFound:
        return
