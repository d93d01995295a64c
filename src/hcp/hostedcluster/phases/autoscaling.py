"""The autoscaler of node pools: from the first pool that follows the load until the last one does not."""

from __future__ import annotations

import asyncio

from hcp.controlplane import autoscaler
from hcp.controlplane.meta import config_hash
from hcp.hostedcluster import autoscaling
from hcp.hostedcluster.leaves import leaves
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.resources import DEPLOYMENTS, SECRETS


async def run(scope: Scope) -> Learned | None:
    if scope.claim.foreign or not scope.startable:
        return None
    if not autoscaling.wanted(scope):
        await _end(scope)
        return None
    p = scope.params
    leaf = (await leaves(scope, [autoscaler.LEAF]))[autoscaler.LEAF.name]
    kubeconfig = autoscaler.guest_kubeconfig(p, leaf, scope.authorities["root-ca"].trusted)
    await asyncio.gather(*(scope.cache.apply(one) for one in (kubeconfig, *autoscaler.account(p))))
    made = autoscaler.deployment(p, scope.spec.get("autoscaling") or {}, config_hash([kubeconfig]))
    live = await scope.cache.apply(made)
    deployments = {**scope.seen.deployments, autoscaler.COMPONENT: live}
    return Learned(made=(leaf, kubeconfig), seen={"deployments": deployments})


async def _end(scope: Scope) -> None:
    """Nothing runs for a cluster whose pools all have a size of their own, and nobody can log in as it any more."""
    if scope.cache.get(DEPLOYMENTS, autoscaler.COMPONENT, scope.namespace) is not None:
        await scope.cache.remove(DEPLOYMENTS, autoscaler.COMPONENT, scope.namespace)
    for name in (autoscaler.KUBECONFIG, autoscaler.LEAF.name):
        if scope.cache.get(SECRETS, name, scope.namespace) is not None:
            await scope.cache.remove(SECRETS, name, scope.namespace)
