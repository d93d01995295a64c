"""Every certificate authority. One is created, never applied: a cache that lags must not replace one that exists."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hcp.api import names
from hcp.api.paths import at
from hcp.controlplane import certs, issuing, rotation
from hcp.hostedcluster.leaves import existing
from hcp.hostedcluster.scope import Learned, Object, Scope
from hcp.kube.resources import CONFIGMAPS
from hcp.pki import readable_certificates

CLIENT_CA = "configuration.apiServer.clientCA.name"


async def run(scope: Scope) -> Learned:
    p = scope.params
    issued = issuing.authorities(p, existing(scope, certs.AUTHORITIES))
    live = await asyncio.gather(
        *(_keep(scope, manifest, name in issued.fresh) for name, manifest in issued.secrets.items())
    )
    found = issuing.read({m["metadata"]["name"]: m for m in live})
    # What pods use of it: keys that wait for their turn must not roll them.
    used = [rotation.manifest(p, name, rotation.Authority(one.active)) for name, one in found.items()]
    further, problem = await _clients(scope)
    bundles = certs.bundles(replace(p, client_ca=further), {name: one.trusted for name, one in found.items()})
    await asyncio.gather(*(scope.cache.apply(m) for m in bundles))
    return Learned(authorities=found, made=(*used, *bundles), seen={"client_ca_problem": problem})


async def _clients(scope: Scope) -> tuple[bytes, str]:
    """Authorities of the owner's whose certificates log in. What is not a certificate never gets to the API server."""
    name = at(scope.spec, CLIENT_CA)
    if not name:
        return b"", ""
    ns = scope.params.cluster_namespace
    source = await scope.cache.user_object(CONFIGMAPS, str(name), ns)
    text = str(((source or {}).get("data") or {}).get(names.CA_BUNDLE_KEY) or "")
    if readable_certificates(text.encode()):
        return text.rstrip("\n").encode() + b"\n", ""
    what = "does not exist" if not text else "holds no certificates"
    return b"", f"{CLIENT_CA.removesuffix('.name')}: the ConfigMap {ns}/{name} with key {names.CA_BUNDLE_KEY} {what}"


async def _keep(scope: Scope, manifest: Object, fresh: bool) -> Object:
    return await scope.cache.create_once(manifest) if fresh else manifest
