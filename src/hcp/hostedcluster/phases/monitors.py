"""Metrics of the control plane, for a Prometheus operator of the management cluster, where there is one."""

from __future__ import annotations

import asyncio

from hcp.api.paths import at
from hcp.controlplane import monitors
from hcp.hostedcluster.leaves import leaves
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.resources import PODMONITORS

_FIELD = "monitoring.metricsSet"


async def run(scope: Scope) -> Learned | None:
    asked = str(at(scope.spec, _FIELD) or "")
    if not await scope.ctx.client.has(PODMONITORS):
        return Learned(seen={"unacted": [*scope.seen.unacted, _FIELD]}) if asked else None
    if scope.claim.foreign or not scope.startable:
        return None
    await leaves(scope, [monitors.leaf()])
    await asyncio.gather(*(scope.cache.apply(one) for one in monitors.pod_monitors(scope.params, asked)))
    return None
