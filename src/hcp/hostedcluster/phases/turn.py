"""Starts have a line, the first one and that of a cluster that wakes; what has begun never waits again."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.hostedcluster import start_queue
from hcp.hostedcluster.scope import LOOK_AGAIN, Learned, Scope
from hcp.kube.resources import DEPLOYMENTS, NODES, STATEFULSETS
from hcp.runtime.conditions import is_true
from hcp.runtime.phases import Waiting
from hcp.runtime.workloads import wanted


async def run(scope: Scope) -> None:
    first = (STATEFULSETS, "etcd") if not scope.params.foreign_etcd else (DEPLOYMENTS, "kube-apiserver")
    live = scope.cache.get(*first, scope.namespace)
    begun = live is not None and wanted(live) > 0
    if begun or is_true((scope.cluster.get("status") or {}).get("conditions"), c.AVAILABLE):
        return
    ahead = scope.tools.start_queue.ahead(
        scope.params.key, start_queue.limit(scope.cache.list(NODES), scope.ctx.shard.of)
    )
    if ahead:
        raise Waiting("other clusters are starting", again=LOOK_AGAIN, facts=Learned(seen={"ahead": ahead}))
