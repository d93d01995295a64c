"""The quota and the disruption budgets. They come when the API is there: before that nothing has to wait for them.

Before that nobody can ask for anything, and there is no pod that a drain may not take: a budget without pods is written
to and complained about, by its controller, with every step of their start.
"""

from __future__ import annotations

import asyncio

from hcp.api import conditions as c
from hcp.controlplane import disruption, quota
from hcp.hostedcluster.scope import Scope
from hcp.runtime.conditions import is_true


async def run(scope: Scope) -> None:
    if is_true((scope.cluster.get("status") or {}).get("conditions"), c.AVAILABLE):
        wanted = [quota.resource_quota(scope.params, scope.ctx.hosted_quota), *disruption.budgets(scope.params)]
        await asyncio.gather(*(scope.cache.apply(one) for one in wanted))
