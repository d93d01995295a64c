"""What keeps pods of parts that are short of them."""

from __future__ import annotations

from hcp.hostedcluster.components import workloads_of
from hcp.hostedcluster.scope import Learned, Scope
from hcp.runtime.workloads import lacking, rolled_out


async def run(scope: Scope) -> Learned | None:
    parts, seen = workloads_of(scope.seen), scope.seen
    short = {name for name, live in parts.items() if name != "etcd" and not rolled_out(live)}
    short |= {"etcd"} if lacking(seen.etcd) else set()
    if not short or scope.claim.foreign:
        scope.tools.troubles.forget(scope.params.key)
        return None
    why, again = scope.tools.troubles.look(scope.cluster, tuple(sorted(short)))
    return Learned(seen={"troubles": why or {}}, again=again)
