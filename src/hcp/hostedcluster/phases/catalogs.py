"""Catalogs of operators that run beside the control plane, from the first node on: before it nobody asks them."""

from __future__ import annotations

import asyncio

from hcp.api import names
from hcp.controlplane import catalogs as parts
from hcp.guest.catalogs import Catalog
from hcp.hostedcluster import catalogs
from hcp.hostedcluster.catalog_digests import Digests
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube import Resource
from hcp.kube.resources import DEPLOYMENTS, SERVICES


async def run(scope: Scope) -> Learned | None:
    if scope.claim.foreign or not scope.startable:
        return None
    wanted = catalogs.outside(scope)
    sources = {one.default.name for one in wanted}
    await asyncio.gather(*(_remove(scope, kind, sources) for kind in (DEPLOYMENTS, SERVICES)))
    if not wanted:
        scope.tools.catalogs.forget(scope.params.key)
        return None
    p = scope.params
    await asyncio.gather(
        *(scope.cache.apply(one) for one in (parts.policy(p), *(parts.service(p, s) for s in sources)))
    )
    tags = tuple(one.image for one in wanted if "@" not in one.image)
    digests: Digests | None = None
    again = None
    if tags and not scope.params.asleep:
        digests, again = scope.tools.catalogs.look(scope.cluster, tags)
    await asyncio.gather(*(_serve(scope, one, digests) for one in wanted))
    return Learned(again=again)


async def _serve(scope: Scope, one: Catalog, digests: Digests | None) -> None:
    """A tag that cannot be asked for is left to who runs the pod, and what runs is left alone."""
    source = one.default.name
    live = scope.cache.get(DEPLOYMENTS, parts.workload(source), scope.namespace)
    guest = scope.tools.guests.state(scope.params.key).guest
    if live is None and not (guest and guest.nodes):
        return
    image = one.image
    if scope.params.asleep:
        if live is None:
            return
        image = str(live["spec"]["template"]["spec"]["containers"][0]["image"])
    elif "@" not in image:
        if digests is None or (image not in digests and live is not None):
            return
        image = digests.get(image, image)
    await scope.cache.apply(parts.deployment(scope.params, source, image))


async def _remove(scope: Scope, kind: Resource, sources: set[str]) -> None:
    for live in scope.cache.list(kind, scope.namespace):
        source = (live["metadata"].get("labels") or {}).get(names.LABEL_CATALOG)
        if source is not None and source not in sources:
            await scope.cache.remove(kind, live["metadata"]["name"], scope.namespace)
