"""The quota and the disruption budgets. They come when what they are for is there; before that nothing waits for them.

Before the API answers nobody can ask for anything. A budget without pods takes care of nothing, and is written to and
complained about, by its controller, with every step of their start.
"""

from __future__ import annotations

import asyncio

from hcp.api import conditions as c
from hcp.controlplane import apiserver, disruption, quota
from hcp.hostedcluster.scope import Scope
from hcp.kube.resources import DEPLOYMENTS, STATEFULSETS
from hcp.runtime.conditions import is_true
from hcp.runtime.workloads import quorum, serving


async def run(scope: Scope) -> None:
    wanted = [one for one in disruption.budgets(scope.params) if _up(scope, one["metadata"]["name"])]
    if is_true((scope.cluster.get("status") or {}).get("conditions"), c.AVAILABLE):
        wanted.append(quota.resource_quota(scope.params, scope.ctx.hosted_quota))
    await asyncio.gather(*(scope.cache.apply(one) for one in wanted))


def _up(scope: Scope, component: str) -> bool:
    if component == apiserver.COMPONENT:
        return serving(scope.cache.get(DEPLOYMENTS, component, scope.namespace))
    return quorum(scope.cache.get(STATEFULSETS, component, scope.namespace))
