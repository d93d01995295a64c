"""Every certificate authority. One is created, never applied: a cache that lags must not replace one that exists."""

from __future__ import annotations

import asyncio

from hcp.controlplane import certs, issuing, rotation
from hcp.hostedcluster.leaves import existing
from hcp.hostedcluster.scope import Learned, Object, Scope


async def run(scope: Scope) -> Learned:
    p = scope.params
    issued = issuing.authorities(p, existing(scope, certs.AUTHORITIES))
    live = await asyncio.gather(
        *(_keep(scope, manifest, name in issued.fresh) for name, manifest in issued.secrets.items())
    )
    found = issuing.read({m["metadata"]["name"]: m for m in live})
    # What pods use of it: keys that wait for their turn must not roll them.
    used = [rotation.manifest(p, name, rotation.Authority(one.active)) for name, one in found.items()]
    bundles = certs.bundles(p, {name: one.trusted for name, one in found.items()})
    await asyncio.gather(*(scope.cache.apply(m) for m in bundles))
    return Learned(authorities=found, made=(*used, *bundles))


async def _keep(scope: Scope, manifest: Object, fresh: bool) -> Object:
    return await scope.cache.create_once(manifest) if fresh else manifest
