"""Keeping Cluster API's two managers true for as long as this operator leads.

Their webhooks are not registered, but their servers want a certificate.
"""

from __future__ import annotations

import base64
import logging
from typing import Any

from hcp.api.names import LABEL_MANAGED_BY, MANAGED_BY
from hcp.controlplane.meta import secret_data
from hcp.kube.errors import AlreadyExists
from hcp.kube.resources import DEPLOYMENTS, SECRETS
from hcp.operator.capi import MANAGERS, WEBHOOK_SECRET, deployment
from hcp.operator.support import Support
from hcp.pki import issue, new_ca
from hcp.runtime import Controller, Result, apply_if_changed
from hcp.runtime.context import OperatorContext

log = logging.getLogger(__name__)
Object = dict[str, Any]
_WEBHOOKS = "capi-webhooks"
_YEARS = 3650
_KEY = "cluster-api"


class ClusterApi:
    """One key, one pass: two Deployments and a Secret. A failure here keeps no control plane from coming up."""

    def __init__(self, ctx: OperatorContext, support: Support) -> None:
        self._ctx = ctx
        self._support = support
        self._deployments = ctx.informers.get(DEPLOYMENTS, ns=ctx.namespace)
        self._secrets = ctx.informers.get(SECRETS, ns=ctx.namespace, labels=f"{LABEL_MANAGED_BY}={MANAGED_BY}")
        self.controller = Controller("cluster-api", self._reconcile, workers=1)

    def wire(self) -> Controller:
        """Look again when somebody changes or deletes one of them."""
        names = {MANAGERS[component][0] for component in MANAGERS}
        self.controller.watch(self._deployments, lambda live: (_KEY,) if live["metadata"]["name"] in names else ())
        self.controller.watch(self._secrets, lambda _: (_KEY,))
        self.controller.enqueue(_KEY)
        return self.controller

    async def _reconcile(self, _: str) -> Result | None:
        await self._certificate()
        for component in MANAGERS:
            image = self._support.images.get(component)
            if image:
                wanted = deployment(component, image, self._ctx.namespace)
                await apply_if_changed(self._ctx.client, self._deployments, wanted)
            else:
                log.warning("no image is known, it is not started", extra={"component": component})
        return None

    async def _certificate(self) -> None:
        client, ns = self._ctx.client, self._ctx.namespace
        live = self._secrets.get(WEBHOOK_SECRET, ns) or await client.get_or_none(SECRETS, WEBHOOK_SECRET, ns)
        if live is not None and {"tls.crt", "tls.key"} <= secret_data(live).keys():
            return
        ca = new_ca(_WEBHOOKS)
        pair = issue(ca, _WEBHOOKS, dns=[_WEBHOOKS], days=_YEARS)
        data = {"tls.crt": pair.cert_pem, "tls.key": pair.key_pem, "ca.crt": ca.cert_pem}
        secret: Object = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": WEBHOOK_SECRET, "namespace": ns, "labels": {LABEL_MANAGED_BY: MANAGED_BY}},
            "type": "kubernetes.io/tls",
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }
        try:
            await client.create(secret)
        except AlreadyExists:
            return
