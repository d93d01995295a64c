"""Certificates in Secrets: what is there, what is made, what is renewed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from hcp.controlplane import certs, issuing
from hcp.hostedcluster.scope import Object, Scope
from hcp.kube.resources import SECRETS


def existing(scope: Scope, names: Iterable[str]) -> dict[str, Object]:
    """Those of these Secrets that are there."""
    found = {name: scope.cache.get(SECRETS, name, scope.namespace) for name in names}
    return {name: live for name, live in found.items() if live is not None}


async def leaves(scope: Scope, wanted: list[certs.LeafSecret]) -> dict[str, Object]:
    """The Secrets of these leaves, renewed where it is time."""
    there = existing(scope, (s.name for s in wanted))
    issued = issuing.leaves(scope.params, wanted, there, scope.authorities, scope.now)
    made = await asyncio.gather(*(_write(scope, s, issued, s.name in there) for s in wanted))
    return {m["metadata"]["name"]: m for m in made}


async def _write(scope: Scope, spec: certs.LeafSecret, issued: issuing.Issued, exists: bool) -> Object:
    """A first leaf is created, so that two passes cannot both make one; a renewed one is applied."""
    manifest = issued.secrets[spec.name]
    if spec.name not in issued.fresh:
        return manifest
    if exists:
        await scope.cache.apply(manifest)
        return manifest
    return await scope.cache.create_once(manifest)
