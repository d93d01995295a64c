"""Network policies, and files that need no secret."""

from __future__ import annotations

import asyncio

from hcp.controlplane import apiserver_config, audit, policies, scheduler
from hcp.hostedcluster.scope import Learned, Scope


async def run(scope: Scope) -> Learned:
    p = scope.params
    side = policies.policies(p)
    if (claim := audit.claim(p)) is not None:
        side.append(claim)
    files = (apiserver_config.config(p), scheduler.config(p))
    await asyncio.gather(*(scope.cache.apply(o) for o in (*side, *files)))
    return Learned(made=files)
