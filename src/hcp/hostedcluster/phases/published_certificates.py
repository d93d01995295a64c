"""Leaves and kubeconfigs that carry the published address."""

from __future__ import annotations

import asyncio

from hcp.controlplane import certs, kubeconfigs
from hcp.controlplane.meta import secret_data
from hcp.hostedcluster.leaves import leaves
from hcp.hostedcluster.scope import Learned, Scope
from hcp.hostedcluster.translate import owner_of


async def run(scope: Scope) -> Learned:
    p = scope.params
    made = await leaves(scope, [s for s in certs.leaves(p) if s.published])
    external = kubeconfigs.external(p, {**scope.secrets(), **made}, scope.authorities["root-ca"].trusted)
    await asyncio.gather(*(scope.cache.apply(m) for m in external))
    data = {m["metadata"]["name"]: secret_data(m)[kubeconfigs.KEY] for m in external}
    custom = data.get("custom-admin-kubeconfig")
    users = kubeconfigs.for_users(p, data["admin-kubeconfig"], owner_of(scope.cluster), custom)
    await asyncio.gather(*(scope.cache.apply(m) for m in users))
    seen = {
        "kubeconfig": f"{p.name}-admin-kubeconfig",
        "custom_kubeconfig": f"{p.name}-custom-admin-kubeconfig" if custom else "",
    }
    return Learned(made=(*made.values(), *external), seen=seen)
