"""Where audit events go. Without it no API server is started: who asks for it wants no request to be missed."""

from __future__ import annotations

import base64

from hcp.controlplane import audit
from hcp.hostedcluster import given
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube import untrusted_kubeconfig


async def run(scope: Scope) -> Learned | None:
    name = (scope.spec.get("auditWebhook") or {}).get("name")
    if not name:
        return None
    source = await given.secret(scope, name, audit.WEBHOOK_KEY)
    where = f"The kubeconfig in Secret {scope.params.cluster_namespace}/{name}"
    data = base64.b64decode(source["data"][audit.WEBHOOK_KEY])
    manifest = audit.webhook_secret(scope.params, untrusted_kubeconfig.plain_text(data, where))
    await scope.cache.apply(manifest)
    return Learned(made=(manifest,))
