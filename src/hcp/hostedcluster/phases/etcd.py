"""etcd starts as soon as its certificates exist; nothing else is waited for but a snapshot, where one is asked for."""

from __future__ import annotations

from dataclasses import replace

from hcp.controlplane import etcd, etcd_members, etcd_restore
from hcp.controlplane.meta import config_hash
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.resources import CONFIGMAPS, STATEFULSETS

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
    await _members(scope)
    await scope.cache.apply(etcd.stateful_set(p, mounted, first))
    return None


async def _members(scope: Scope) -> None:
    """Who founds etcd is written down before it starts, and that nobody does any more when it has been."""
    p, record = scope.params, scope.seen.etcd_record
    if record is None or not p.for_etcd.highly_available:
        return
    started = etcd_members.founded(record, scope.cache.get(STATEFULSETS, etcd.COMPONENT, p.namespace))
    if started or scope.cache.get(CONFIGMAPS, etcd.MEMBERS_CONFIG, p.namespace) is None:
        await scope.cache.apply(etcd_members.manifest(p, replace(record, founding=record.founding and not started)))
