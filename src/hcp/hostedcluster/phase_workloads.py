"""The phases for what runs: Services first, then the pods, all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from hcp.api import conditions as c
from hcp.controlplane import (
    apiserver,
    apiserver_config,
    audit,
    capi,
    controller_manager,
    disruption,
    etcd,
    policies,
    quota,
    scheduler,
    services,
)
from hcp.controlplane.meta import config_hash
from hcp.hostedcluster.scope import Scope
from hcp.kube.errors import NotFound
from hcp.kube.resources import CAPI_CLUSTERS, DEPLOYMENTS, KUBEVIRTCLUSTERS
from hcp.runtime.conditions import is_true
from hcp.runtime.phases import Waiting
from hcp.runtime.workloads import rolled_out

ETCD_MOUNTS = (("Secret", "etcd-server-tls"), ("Secret", "etcd-peer-tls"))


def _hash(scope: Scope, mounts: Iterable[tuple[str, str]]) -> str:
    return config_hash(scope.made[m] for m in mounts)


async def publish(scope: Scope) -> None:
    """Services and Routes; with what the cluster answers, the published addresses, if they are there already."""
    p = scope.params
    objects = [services.api_service(p), services.konnectivity_service(p), *etcd.services(p), *services.routes(p)]
    live = await asyncio.gather(*(scope.cache.apply(o) for o in objects))
    by_name = {(o["kind"], o["metadata"]["name"]): o for o in live}
    found = {}
    for service, name in (("APIServer", services.API_SERVICE), ("Konnectivity", services.KONNECTIVITY_SERVICE)):
        publishing = p.published(service)
        found[service] = services.endpoint(publishing, by_name.get(("Service", name)), by_name.get(("Route", name)))
        if found[service] is None:
            scope.seen.waiting_for.append(services.waiting_for(publishing))
    scope.change(api_endpoint=found["APIServer"], konnectivity_endpoint=found["Konnectivity"])
    scope.seen.api_endpoint = found["APIServer"]


async def rules(scope: Scope) -> None:
    """Network policies, disruption budgets, and files that need no secret."""
    p = scope.params
    side = [*policies.policies(p), *disruption.budgets(p)]
    if (claim := audit.claim(p)) is not None:
        side.append(claim)
    await asyncio.gather(
        *(scope.cache.apply(o) for o in side),
        *(scope.apply(o) for o in (apiserver_config.config(p), scheduler.config(p))),
    )


def _ready(scope: Scope) -> bool:
    """Without a complete release nothing new is started, and nothing that runs is touched."""
    return scope.release is not None and scope.seen.release.usable


async def etcd_workload(scope: Scope) -> None:
    """etcd starts as soon as its certificates exist; nothing else is waited for."""
    if _ready(scope):
        await scope.cache.apply(etcd.stateful_set(scope.params, _hash(scope, ETCD_MOUNTS)))


async def controllers(scope: Scope) -> None:
    """controller-manager and scheduler reach the API through the service network, so they need no published address."""
    if not _ready(scope):
        return
    p = scope.params
    wanted = (
        controller_manager.deployment(p, _hash(scope, controller_manager.CONTROLLER.mounted())),
        scheduler.deployment(p, _hash(scope, scheduler.CONTROLLER.mounted())),
    )
    await asyncio.gather(*(scope.cache.apply(w) for w in wanted if not _too_early(scope, w)))


def _too_early(scope: Scope, wanted: dict[str, Any]) -> bool:
    """In an upgrade the API server goes first: no other part may be newer than it."""
    live = scope.cache.get(DEPLOYMENTS, wanted["metadata"]["name"], scope.namespace)
    api = scope.cache.get(DEPLOYMENTS, apiserver.COMPONENT, scope.namespace)
    if live is None or api is None or _image(live) == _image(wanted):
        return False
    return _image(api) != scope.params.image(apiserver.COMPONENT) or not rolled_out(api)


def _image(deployment: dict[str, Any]) -> str:
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


async def api_server(scope: Scope) -> None:
    """kube-apiserver, once its certificate can carry the published address: it never rolls for that."""
    if _ready(scope):
        p = scope.params
        mounts = apiserver.mounted(p)
        if any(authority.touched for authority in scope.authorities.values()):
            # It would read these again by itself, some time; who changes them wants to know when everybody has.
            mounts += tuple(("ConfigMap", name) for name in apiserver.NOT_HASHED)
        await scope.cache.apply(apiserver.deployment(p, _hash(scope, mounts)))


async def addresses(scope: Scope) -> None:
    """Stops the pass while an address is missing; the event that brings it starts the next one."""
    if scope.params.api_endpoint is None or scope.params.konnectivity_endpoint is None:
        raise Waiting("WaitingOnInfrastructureReady", "; ".join(scope.seen.waiting_for))


async def cluster_api(scope: Scope) -> None:
    """Cluster and KubevirtCluster, where the platform has machines, and the rights of those who make them."""
    platform = scope.spec.get("platform") or {}
    if platform.get("type") != "KubeVirt":
        return
    await asyncio.gather(*(scope.cache.apply(o) for o in capi.bindings(scope.params)))
    credentials = bool((platform.get("kubevirt") or {}).get("credentials"))
    live, _ = await asyncio.gather(
        scope.cache.apply(capi.kubevirt_cluster(scope.params, credentials=credentials)),
        scope.cache.apply(capi.cluster(scope.params)),
    )
    if (live.get("status") or {}).get("ready") is not True:
        made = await scope.ctx.client.patch(
            KUBEVIRTCLUSTERS,
            scope.params.infra_id,
            scope.namespace,
            {"status": {"ready": True}},
            subresource="status",
        )
        scope.cache.informer(KUBEVIRTCLUSTERS).observe(made)


async def set_paused(scope: Scope, paused: bool) -> None:
    """Machines rest with the cluster."""
    live = scope.cache.get(CAPI_CLUSTERS, scope.params.infra_id, scope.namespace)
    if live is None or bool(live["spec"].get("paused")) == paused:
        return
    try:
        await scope.ctx.client.patch(
            CAPI_CLUSTERS, scope.params.infra_id, scope.namespace, {"spec": {"paused": paused}}
        )
    except NotFound:
        return


async def limits(scope: Scope) -> None:
    """The quota. It comes when the API is there: before that nobody can ask for anything, and nothing waits for it."""
    if not is_true((scope.cluster.get("status") or {}).get("conditions"), c.AVAILABLE):
        return
    await scope.cache.apply(quota.resource_quota(scope.params, scope.ctx.hosted_quota))
