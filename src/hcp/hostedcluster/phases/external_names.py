"""Host names of the owner's: which of them the DNS knows."""

from __future__ import annotations

from hcp.hostedcluster import external_names
from hcp.hostedcluster.observed import Names
from hcp.hostedcluster.scope import Learned, Scope


async def run(scope: Scope) -> Learned | None:
    hosts = external_names.given(scope.spec)
    if not hosts or scope.claim.foreign:
        scope.tools.names.forget(scope.params.key)
        return None
    unknown, again = scope.tools.names.look(scope.cluster, hosts)
    return Learned(seen={"external_names": Names(hosts, unknown)}, again=again)
