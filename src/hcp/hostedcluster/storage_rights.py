"""Whether the owner of an external infra cluster lets us make volumes: asked once, and again while it is not so."""

from __future__ import annotations

import asyncio

from hcp.api.paths import at
from hcp.csi.kubevirt import rights
from hcp.hostedcluster.scope import Scope
from hcp.kube import Client, Resource
from hcp.kubevirt.infra import InfraClients, credentials

_AT_ONCE = 10
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
        found = await lacking(infra.client, infra.namespace)
        if not found:
            _granted.add(mark)
        return found
    finally:
        await infras.close()


async def lacking(client: Client, namespace: str) -> tuple[str, ...]:
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(group: str, name: str, verb: str) -> str:
        plural, _, sub = name.partition("/")
        async with limit:
            allowed = await client.allowed(verb, Resource(group, "v1", plural, ""), namespace, sub)
        full = f"{name}.{group}" if group else name
        return "" if allowed else f"{verb} {full}"

    asked = [one(r.group, name, verb) for r in rights.VOLUMES for name in r.resources for verb in r.verbs]
    return tuple(word for word in await asyncio.gather(*asked) if word)
