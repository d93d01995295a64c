"""A pool without its hosted cluster waits for it, and says so."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.nodepool.scope import Scope, refused


async def run(scope: Scope) -> None:
    if scope.cluster is None:
        name = scope.spec.get("clusterName", "")
        raise refused(c.READY, c.NOT_FOUND, f"the hosted cluster {name!r} does not exist in this namespace")
