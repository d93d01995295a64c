"""The storage driver beside the control plane, from the first node on: before it nobody can use a volume."""

from __future__ import annotations

import asyncio

from hcp.api import names
from hcp.controlplane import storage as parts
from hcp.controlplane import storage_plan
from hcp.controlplane.meta import config_hash
from hcp.guest.look import READY_NODE
from hcp.guest.state import GuestState
from hcp.hostedcluster import storage
from hcp.hostedcluster.leaves import leaves
from hcp.hostedcluster.observed import StorageState
from hcp.hostedcluster.scope import LOOK_AGAIN, Learned, Object, Scope
from hcp.hostedcluster.storage_rights import missing_rights
from hcp.kube.resources import DEPLOYMENTS


async def run(scope: Scope) -> Learned | None:
    if not storage_plan.wanted(scope.spec) or not scope.startable:
        return None
    wanted = storage.of(scope)
    live = scope.cache.get(DEPLOYMENTS, parts.COMPONENT, scope.namespace)
    if wanted is None:
        if live is not None:
            await scope.cache.remove(DEPLOYMENTS, parts.COMPONENT, scope.namespace)
        asked = storage_plan.asked_for(scope.spec)
        return Learned(seen={"storage": StorageState(missing=tuple(storage.missing_images(scope)))} if asked else {})
    nodes = scope.seen.guest.nodes if scope.seen.guest else 0
    if live is None and not nodes:
        return Learned(seen={"storage": StorageState(plan=wanted.plan)})
    lacking = await missing_rights(scope) if wanted.external else ()
    made = await _apply(scope, wanted) if wanted.plan.classes and not lacking else ()
    live = scope.cache.get(DEPLOYMENTS, parts.COMPONENT, scope.namespace)
    waiting = not_available(scope.seen.guest)
    state = StorageState(plan=wanted.plan, nodes=nodes, controller=live, lacking=tuple(lacking), waiting=waiting)
    deployments = scope.seen.deployments if live is None else {**scope.seen.deployments, parts.COMPONENT: live}
    again = LOOK_AGAIN if lacking else None
    return Learned(made=made, seen={"storage": state, "deployments": deployments}, again=again)


def not_available(guest: GuestState | None) -> tuple[str, ...] | None:
    """Inside the guest: the driver's own parts, and a ready node: without one nobody can tell how the parts are."""
    if guest is None or not guest.reachable:
        return None
    return tuple(one for one in guest.waiting if "csi" in one or (guest.nodes and one == READY_NODE))


async def _apply(scope: Scope, wanted: storage.Storage) -> tuple[Object, ...]:
    p = scope.params
    leaf = (await leaves(scope, [parts.LEAF]))[parts.LEAF.name]
    kubeconfig = parts.guest_kubeconfig(p, leaf, scope.authorities["root-ca"].trusted)
    mounted = [kubeconfig, parts.settings(p, wanted.plan)]
    if wanted.external and ("Secret", names.INFRA_CREDENTIALS) in scope.made:
        mounted.append(scope.made[("Secret", names.INFRA_CREDENTIALS)])
    accounts = [] if wanted.external else parts.account(p)
    await asyncio.gather(*(scope.cache.apply(one) for one in (*mounted[:2], *accounts)))
    deployment = parts.deployment(p, wanted.plan, wanted.driver_image, config_hash(mounted), external=wanted.external)
    await scope.cache.apply(deployment)
    return (leaf, *mounted[:2])
