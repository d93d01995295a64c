"""Whether the owner of an external infra cluster lets us make volumes: asked once, and again while it is not so."""

from __future__ import annotations

from hcp.api.names import INFRA_CREDENTIALS
from hcp.csi.kubevirt import rights
from hcp.hostedcluster.infra_ingress import fingerprint
from hcp.hostedcluster.scope import Scope
from hcp.kubevirt import granted
from hcp.kubevirt.infra import InfraClients, credentials

# Clients that were granted everything: rights that go later are told by the driver's own errors.
_granted: set[tuple[str, str]] = set()


async def missing_rights(scope: Scope) -> tuple[str, ...]:
    """`verb resource` for all that is needed and not granted in the infra namespace."""
    given = credentials(scope.spec.get("platform") or {})
    secret = scope.made.get(("Secret", INFRA_CREDENTIALS))
    mark = (scope.params.cluster_uid, fingerprint(secret))
    if secret is not None and mark in _granted:
        return ()
    infras = InfraClients(scope.ctx.client)
    infra = await infras.get(scope.namespace, given)
    try:
        found = tuple(await granted.missing(infra.client, rights.VOLUMES, infra.namespace))
        if not found:
            _granted.add(mark)
        return found
    finally:
        await infras.close()
