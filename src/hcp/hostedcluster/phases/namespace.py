"""The hosted namespace: created, never taken over."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hcp.controlplane.namespace import UID_ANNOTATION, bare_namespace, free_uid, namespace
from hcp.errors import HcpError
from hcp.hostedcluster.scope import Learned, Object, Scope
from hcp.kube.errors import AlreadyExists
from hcp.kube.resources import NAMESPACES, SCCS
from hcp.runtime.phases import Waiting

# User ids are given out one at a time.
_uids = asyncio.Lock()


async def run(scope: Scope) -> Learned:
    """The namespace, with a user id of its own where no SCC gives one."""
    live = scope.claim.namespace
    if live is not None and live["metadata"].get("deletionTimestamp"):
        raise Waiting(f"Namespace {scope.namespace} is still being deleted")
    if live is None:
        live = await _new_namespace(scope)
    async with _uids:
        uid = _uid(live)
        if uid is None and not await scope.ctx.client.has(SCCS):
            there = [*scope.cache.list(NAMESPACES), *scope.cache.all_namespaces.list()]
            shard = scope.ctx.shard
            uid = free_uid((u for n in there if (u := _uid(n)) is not None), shard.number, shard.of)
        await scope.cache.apply(namespace(replace(scope.params, uid=uid), live["metadata"]["uid"]))
    return Learned(params={"uid": uid})


async def _new_namespace(scope: Scope) -> Object:
    try:
        return await scope.ctx.client.create(bare_namespace(scope.params))
    except AlreadyExists as exc:
        raise HcpError(f"Somebody else has just made the namespace {scope.namespace}") from exc


def _uid(live: Object | None) -> int | None:
    text = ((live or {}).get("metadata", {}).get("annotations") or {}).get(UID_ANNOTATION, "")
    return int(text) if text.isdigit() else None
