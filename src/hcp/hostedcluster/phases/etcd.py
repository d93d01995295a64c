"""etcd starts as soon as its certificates exist; nothing else is waited for but a snapshot, where one is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hcp.api.paths import at
from hcp.controlplane import etcd, etcd_members, etcd_restore
from hcp.controlplane.meta import config_hash
from hcp.hostedcluster.scope import Learned, Object, Scope
from hcp.kube.resources import CONFIGMAPS, STATEFULSETS
from hcp.runtime import compare

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
    await scope.cache.apply(_stateful_set(scope, mounted, first))
    return None


def _stateful_set(scope: Scope, mounted: str, first: Sequence[Object]) -> Object:
    """Members of before that end at once learn to leave slowly when they are started anew for a reason."""
    live = scope.cache.get(STATEFULSETS, etcd.COMPONENT, scope.namespace)
    before = at(live, "spec.template")
    if before is not None and not any(c.get("lifecycle") for c in at(before, "spec.containers") or ()):
        at_once = etcd.stateful_set(scope.params, mounted, first, leaves_slowly=False)
        template = at_once["spec"]["template"]
        if compare.project(template, before) == template:
            return at_once
    return etcd.stateful_set(scope.params, mounted, first)


async def _members(scope: Scope) -> None:
    """Who founds etcd is written down before it starts, and that nobody does any more when it has been."""
    p, record = scope.params, scope.seen.etcd_record
    if record is None or not p.for_etcd.highly_available:
        return
    started = etcd_members.founded(record, scope.cache.get(STATEFULSETS, etcd.COMPONENT, p.namespace))
    if started or scope.cache.get(CONFIGMAPS, etcd.MEMBERS_CONFIG, p.namespace) is None:
        await scope.cache.apply(etcd_members.manifest(p, replace(record, founding=record.founding and not started)))
