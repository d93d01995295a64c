"""The document is all that is brought up to date here, and with it the pool is; machines are their owner's."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.api.names import ANNOTATION_CURRENT_CONFIG_VERSION, MARK_CURRENT_CONFIG
from hcp.nodepool.scope import LOOK_AGAIN, Learned, Scope
from hcp.runtime.phases import Waiting


async def run(scope: Scope) -> Learned | None:
    if scope.config is None:
        raise Waiting("the node configuration is not known yet", again=LOOK_AGAIN)
    if scope.paused:
        return None
    return Learned(
        said=dict.fromkeys((c.UPDATING_VERSION, c.UPDATING_CONFIG), (False, c.AS_EXPECTED, "")),
        seen={"finished": scope.known_release().version},
        annotations={
            MARK_CURRENT_CONFIG: scope.config.without_version,
            ANNOTATION_CURRENT_CONFIG_VERSION: scope.config.target,
        },
    )
