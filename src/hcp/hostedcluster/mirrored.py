"""What others read instead of the HostedCluster: its HostedControlPlane and one object for each part."""

from __future__ import annotations

from hcp.hostedcluster import components, projected_status
from hcp.hostedcluster.scope import Object, Scope
from hcp.kube.resources import CONTROLPLANECOMPONENTS, HOSTEDCONTROLPLANES
from hcp.runtime.reconcile import write_status


async def tell_projection(scope: Scope, after: Object) -> None:
    live = scope.cache.get(HOSTEDCONTROLPLANES, scope.params.name, scope.namespace)
    if live is None or scope.seen.pause.paused:
        return
    before = live.get("status") or {}
    nodes = scope.seen.guest.nodes if scope.seen.guest else int(before.get("nodeCount") or 0)
    projected = {**before, **projected_status.projected(before, after, nodes)}
    await write_status(scope.cache.informer(HOSTEDCONTROLPLANES), live, projected)


async def tell_components(scope: Scope) -> None:
    """A cluster installed by an older hcp may lack the kind."""
    found = components.workloads_of(scope.seen)
    if not found or scope.params.owner is None or not await scope.ctx.client.has(CONTROLPLANECOMPONENTS):
        return
    stamp = scope.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    for name, workload in sorted(found.items()):
        before = scope.cache.get(CONTROLPLANECOMPONENTS, name, scope.namespace)
        if components.due(workload, before, scope.now):
            continue
        wanted = components.component(scope.params, name, workload, before, stamp)
        if before is None or before.get("status") != wanted["status"]:
            scope.cache.informer(CONTROLPLANECOMPONENTS).observe(await scope.ctx.client.apply(wanted))


def next_component(scope: Scope) -> float | None:
    """Seconds until a part has to be told of that is not complete yet."""
    times = [
        components.due(workload, scope.cache.get(CONTROLPLANECOMPONENTS, name, scope.namespace), scope.now)
        for name, workload in components.workloads_of(scope.seen).items()
    ]
    return min((seconds for seconds in times if seconds), default=None)
