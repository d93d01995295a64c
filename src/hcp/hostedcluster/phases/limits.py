"""The quota. It comes when the API is there: before that nobody can ask for anything, and nothing waits for it."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.controlplane import quota
from hcp.hostedcluster.scope import Scope
from hcp.runtime.conditions import is_true


async def run(scope: Scope) -> None:
    if is_true((scope.cluster.get("status") or {}).get("conditions"), c.AVAILABLE):
        await scope.cache.apply(quota.resource_quota(scope.params, scope.ctx.hosted_quota))
