"""etcd starts as soon as its certificates exist; nothing else is waited for."""

from __future__ import annotations

from hcp.controlplane import etcd
from hcp.controlplane.meta import config_hash
from hcp.hostedcluster.scope import Scope

MOUNTS = (("Secret", "etcd-server-tls"), ("Secret", "etcd-peer-tls"))


async def run(scope: Scope) -> None:
    if scope.startable and not scope.params.foreign_etcd:
        mounted = config_hash(scope.made[m] for m in MOUNTS)
        await scope.cache.apply(etcd.stateful_set(scope.params, mounted))
