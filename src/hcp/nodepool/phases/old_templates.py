"""Templates that no MachineSet refers to any more are deleted."""

from __future__ import annotations

from hcp.api.paths import at
from hcp.kube.resources import KUBEVIRTMACHINETEMPLATES
from hcp.nodepool.scope import Scope


async def run(scope: Scope) -> None:
    watches = scope.tools.watches
    if scope.paused or not scope.template:
        return
    makers = [*watches.of_pool(watches.sets, scope.key), *watches.of_pool(watches.deployments, scope.key)]
    used = {at(item, "spec.template.spec.infrastructureRef.name") for item in makers}
    for item in watches.of_pool(watches.templates, scope.key):
        name = item["metadata"]["name"]
        if name not in used and name != scope.template and item["metadata"]["namespace"] == scope.hosted:
            await scope.ctx.client.delete(KUBEVIRTMACHINETEMPLATES, name, scope.hosted, missing_ok=True)
