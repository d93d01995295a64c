"""Stops the pass while a published address is missing; the event that brings it starts the next one."""

from __future__ import annotations

from hcp.hostedcluster.scope import Scope
from hcp.runtime.phases import Waiting


async def run(scope: Scope) -> None:
    if scope.params.api_endpoint is None or scope.params.konnectivity_endpoint is None:
        raise Waiting("; ".join(scope.seen.waiting_for))
