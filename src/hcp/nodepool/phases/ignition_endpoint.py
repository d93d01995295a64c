"""The bootstrap server's address and authority must be known before machines can be told of them."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.api.paths import at
from hcp.errors import HcpError
from hcp.nodepool.scope import LOOK_AGAIN, Learned, Scope, failed, refused
from hcp.runtime.phases import Waiting

KIND = c.IGNITION_ENDPOINT_AVAILABLE


async def run(scope: Scope) -> Learned:
    if not at(scope.cluster, "status.ignitionEndpoint"):
        raise refused(KIND, c.IGNITION_ENDPOINT_MISSING, "Ignition endpoint not available, waiting")
    if await scope.tools.watches.authority() is None:
        error = HcpError("the bootstrap server's certificate authority does not exist yet")
        raise failed(error, KIND, c.IGNITION_CA_MISSING, "still waiting for the ignition CA")
    # Shown only while something is wrong.
    facts = Learned(said={KIND: None})
    if not scope.infra_id:
        raise Waiting("the hosted cluster has no infraID yet", again=LOOK_AGAIN, facts=facts)
    return facts
