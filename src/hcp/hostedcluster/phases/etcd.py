"""etcd starts as soon as its certificates exist; nothing else is waited for but a snapshot, where one is asked for."""

from __future__ import annotations

from hcp.controlplane import etcd, etcd_restore
from hcp.controlplane.meta import config_hash
from hcp.hostedcluster.scope import Learned, Scope

MOUNTS = (("Secret", "etcd-server-tls"), ("Secret", "etcd-peer-tls"))


async def run(scope: Scope) -> Learned | None:
    p, image = scope.params, scope.ctx.own_image
    if not scope.startable or p.foreign_etcd:
        return None
    restoring = etcd_restore.asked(p)
    if restoring and (problem := etcd_restore.problem(p, image)):
        # An etcd that started empty instead could not be filled any more.
        return Learned(seen={"restore_problem": problem})
    mounted = config_hash(scope.made[m] for m in MOUNTS)
    first = [etcd_restore.filler(p, image)] if restoring else []
    await scope.cache.apply(etcd.stateful_set(p, mounted, first))
    return None
