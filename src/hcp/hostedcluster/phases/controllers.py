"""controller-manager and scheduler reach the API through the service network, so they need no published address."""

from __future__ import annotations

import asyncio

from hcp.controlplane import apiserver, controller_manager, scheduler
from hcp.controlplane.meta import config_hash
from hcp.hostedcluster.scope import Object, Scope
from hcp.kube.resources import DEPLOYMENTS
from hcp.runtime.workloads import image, rolled_out


async def run(scope: Scope) -> None:
    if not scope.startable:
        return
    wanted = [
        part.deployment(scope.params, config_hash(scope.made[m] for m in part.CONTROLLER.mounted()))
        for part in (controller_manager, scheduler)
    ]
    await asyncio.gather(*(scope.cache.apply(w) for w in wanted if not _too_early(scope, w)))


def _too_early(scope: Scope, wanted: Object) -> bool:
    """In an upgrade the API server goes first: no other part may be newer than it."""
    live = scope.cache.get(DEPLOYMENTS, wanted["metadata"]["name"], scope.namespace)
    api = scope.cache.get(DEPLOYMENTS, apiserver.COMPONENT, scope.namespace)
    if live is None or api is None or image(live) == image(wanted):
        return False
    return image(api) != scope.params.image(apiserver.COMPONENT) or not rolled_out(api)
