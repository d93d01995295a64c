"""Repair machines only when asked to, and only once bootstrapping is known to work at all."""

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
    if at(scope.pool, "spec.management.autoRepair") and scope.says(c.REACHED_IGNITION_ENDPOINT):
        given = (scope.hosted, scope.pool, scope.infra_id, annotations_of(scope.cluster))
        await apply_if_changed(client, watches.repair_templates, repair_template(*given))
        await apply_if_changed(client, watches.checks, machine_health_check(*given))
        return
    for informer in (watches.checks, watches.repair_templates):
        if informer.get(scope.name, scope.hosted) is not None:
            await client.delete(informer.resource, scope.name, scope.hosted, missing_ok=True)
