"""Nothing is read or made in a namespace that is not, or not yet, the hosted cluster's."""

from __future__ import annotations

from hcp.nodepool.scope import Scope
from hcp.runtime.phases import Waiting


async def run(scope: Scope) -> None:
    if not scope.tools.watches.has_namespace(scope.known_cluster(), scope.hosted):
        raise Waiting(f"the hosted cluster has no namespace {scope.hosted} of its own yet")
