"""Leaves that need no published address, so that etcd starts in the first pass."""

from __future__ import annotations

import asyncio

from hcp.controlplane import certs, kubeconfigs
from hcp.hostedcluster.leaves import leaves
from hcp.hostedcluster.scope import Learned, Scope


async def run(scope: Scope) -> Learned:
    made = await leaves(scope, [s for s in certs.leaves(scope.params) if not s.published])
    known = {**scope.secrets(), **made}
    inside = kubeconfigs.internal(scope.params, known, scope.authorities["root-ca"].trusted)
    await asyncio.gather(*(scope.cache.apply(m) for m in inside))
    return Learned(made=(*made.values(), *inside))
