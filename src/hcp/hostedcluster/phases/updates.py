"""Which updates a cluster's channel offers; a cluster that follows none costs nothing."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.errors import HcpError, sentence
from hcp.hostedcluster.scope import Learned, Scope
from hcp.hostedcluster.update_source import question
from hcp.hostedcluster.update_status import failed


async def run(scope: Scope) -> Learned:
    if not scope.spec.get("channel"):
        scope.tools.updates.forget(scope.params.key)
        return Learned()
    if scope.release is None:
        return Learned()
    try:
        asked = question(scope.spec, scope.seen.release.image, scope.release.version, scope.release.arch)
    except HcpError as error:
        return Learned(seen={"updates": failed(c.INVALID_URI, sentence(error))})
    known, again = scope.tools.updates.look(scope.cluster, asked)
    return Learned(seen={"updates": known}, again=again)
