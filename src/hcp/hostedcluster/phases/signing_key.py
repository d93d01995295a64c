"""The key for service account tokens: the user's, or one made once."""

from __future__ import annotations

import base64

from hcp.controlplane import copies
from hcp.hostedcluster import given
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.resources import SECRETS
from hcp.pki import new_signing_key


async def run(scope: Scope) -> Learned:
    p = scope.params
    if name := (scope.spec.get("serviceAccountSigningKey") or {}).get("name"):
        source = await given.secret(scope, name, "key")
        old = base64.b64decode(source["data"].get("old-key.pub", ""))
        manifest = copies.signing_key(p, base64.b64decode(source["data"]["key"]), old)
        await scope.cache.apply(manifest)
        return Learned(made=(manifest,))
    live = scope.cache.get(SECRETS, copies.SIGNING_KEY, p.namespace)
    if live is None:
        live = await scope.cache.create_once(copies.signing_key(p, new_signing_key()))
    return Learned(made=(live,))
