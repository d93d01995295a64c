"""Repair machines only when asked to, and only once bootstrapping is known to work at all.

Machines that a restore took over fetched their document elsewhere: that they are nodes of what the pool asks for proves
as much.
"""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.api.paths import annotations_of, at
from hcp.nodepool.health import machine_health_check, repair_template
from hcp.nodepool.scope import Scope
from hcp.runtime import apply_if_changed


async def run(scope: Scope) -> None:
    if scope.paused:
        return
    client, watches = scope.ctx.client, scope.tools.watches
    if at(scope.pool, "spec.management.autoRepair") and (scope.says(c.REACHED_IGNITION_ENDPOINT) or _taken_over(scope)):
        given = (scope.hosted, scope.pool, scope.infra_id, annotations_of(scope.cluster))
        await apply_if_changed(client, watches.repair_templates, repair_template(*given))
        await apply_if_changed(client, watches.checks, machine_health_check(*given))
        return
    for informer in (watches.checks, watches.repair_templates):
        if informer.get(scope.name, scope.hosted) is not None:
            await client.delete(informer.resource, scope.name, scope.hosted, missing_ok=True)


def _taken_over(scope: Scope) -> bool:
    machines = scope.tools.watches.of_pool(scope.tools.watches.machines, scope.key)
    return bool(scope.version or scope.seen.finished) and any(at(one, "status.nodeRef") for one in machines)
