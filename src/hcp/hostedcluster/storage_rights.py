"""Whether the owner of an external infra cluster lets us make volumes: asked once, and again while it is not so."""

from __future__ import annotations

from hcp.api.paths import at
from hcp.csi.kubevirt import rights
from hcp.hostedcluster.scope import Scope
from hcp.kubevirt import granted
from hcp.kubevirt.infra import InfraClients, credentials

# Clients that were granted everything: rights that go later are told by the driver's own errors.
_granted: set[tuple[str, str]] = set()


async def missing_rights(scope: Scope) -> tuple[str, ...]:
    """`verb resource` for all that is needed and not granted in the infra namespace."""
    given = credentials(scope.spec.get("platform") or {})
    infras = InfraClients(scope.ctx.client)
    infra = await infras.get(scope.namespace, given)
    try:
        secret = scope.made.get(("Secret", "kubevirt-infra-credentials"))
        mark = (scope.params.cluster_uid, str(at(secret, "data.kubeconfig") or ""))
        if mark in _granted:
            return ()
        found = tuple(await granted.missing(infra.client, rights.VOLUMES, infra.namespace))
        if not found:
            _granted.add(mark)
        return found
    finally:
        await infras.close()
