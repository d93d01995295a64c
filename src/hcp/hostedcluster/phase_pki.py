"""The phases for certificates: authorities first, leaves when what they say is known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from hcp.controlplane import certs, issuing, kubeconfigs, rotation
from hcp.controlplane.meta import secret_data
from hcp.hostedcluster.scope import Object, Scope
from hcp.hostedcluster.translate import owner_of
from hcp.kube.resources import SECRETS


def _existing(scope: Scope, names: Iterable[str]) -> dict[str, Object]:
    found = {name: scope.cache.get(SECRETS, name, scope.namespace) for name in names}
    return {name: live for name, live in found.items() if live is not None}


async def authorities(scope: Scope) -> None:
    """Every CA. A CA is created, never applied: a cache that lags must not replace one that exists."""
    p = scope.params
    issued = issuing.authorities(p, _existing(scope, certs.AUTHORITIES))
    live = await asyncio.gather(
        *(_keep(scope, manifest, name in issued.fresh) for name, manifest in issued.secrets.items())
    )
    scope.authorities = issuing.read({m["metadata"]["name"]: m for m in live})
    for name, authority in scope.authorities.items():
        # What pods use of it: keys that wait for their turn must not roll them.
        scope.remember(rotation.manifest(p, name, rotation.Authority(authority.active)))
    cas = {name: authority.trusted for name, authority in scope.authorities.items()}
    await asyncio.gather(*(scope.apply(m) for m in certs.bundles(p, cas)))


async def _keep(scope: Scope, manifest: Object, fresh: bool) -> Object:
    return await scope.cache.create_once(manifest) if fresh else manifest


async def early_leaves(scope: Scope) -> None:
    """Leaves that need no published address, so that etcd starts in the first pass."""
    await _leaves(scope, [s for s in certs.leaves(scope.params) if not s.published])
    p, ca = scope.params, scope.authorities["root-ca"].trusted
    await asyncio.gather(*(scope.apply(m) for m in kubeconfigs.internal(p, _made(scope), ca)))


async def published_leaves(scope: Scope) -> None:
    """Leaves and kubeconfigs that carry the published address."""
    await _leaves(scope, [s for s in certs.leaves(scope.params) if s.published])
    p, ca = scope.params, scope.authorities["root-ca"].trusted
    external = kubeconfigs.external(p, _made(scope), ca)
    await asyncio.gather(*(scope.apply(m) for m in external))
    data = {m["metadata"]["name"]: secret_data(m)[kubeconfigs.KEY] for m in external}
    custom = data.get("custom-admin-kubeconfig")
    users = kubeconfigs.for_users(p, data["admin-kubeconfig"], owner_of(scope.cluster), custom)
    await asyncio.gather(*(scope.cache.apply(m) for m in users))
    scope.seen.kubeconfig = f"{p.name}-admin-kubeconfig"
    scope.seen.custom_kubeconfig = f"{p.name}-custom-admin-kubeconfig" if custom else ""


async def _leaves(scope: Scope, wanted: list[certs.LeafSecret]) -> None:
    existing = _existing(scope, (s.name for s in wanted))
    issued = issuing.leaves(scope.params, wanted, existing, scope.authorities, scope.now)
    await asyncio.gather(
        *(_write_leaf(scope, s, issued, s.name in existing) for s in wanted),
    )


async def _write_leaf(scope: Scope, spec: certs.LeafSecret, issued: issuing.Issued, exists: bool) -> None:
    """A first leaf is created, so that two passes cannot both make one; a renewed one is applied."""
    manifest = issued.secrets[spec.name]
    if spec.name not in issued.fresh:
        scope.remember(manifest)
    elif exists:
        await scope.apply(manifest)
    else:
        live = await scope.cache.create_once(manifest)
        scope.remember(live)


def _made(scope: Scope) -> dict[str, Object]:
    return {name: manifest for (kind, name), manifest in scope.made.items() if kind == "Secret"}
