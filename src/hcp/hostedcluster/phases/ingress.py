"""The default ingress, from the first node on: its certificate, and the way through the infra cluster's router."""

from __future__ import annotations

import asyncio

from hcp.api.paths import at
from hcp.guest.platform.settings import apps_domain
from hcp.hostedcluster import ingress
from hcp.hostedcluster.leaves import existing, leaves
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.resources import INGRESS_CONFIGS, ROUTES


async def run(scope: Scope) -> Learned | None:
    domain, known = apps_domain(scope.cluster), scope.tools.guests.state(scope.params.key).guest
    if scope.claim.foreign or not domain or not ingress.wanted(scope.spec) or not ingress.image(scope):
        return None
    begun = bool(existing(scope, [ingress.LEAF]))
    if not scope.startable or (not begun and not (known and known.nodes)):
        return None
    made = await leaves(scope, [ingress.leaf(domain)])
    port = known.ingress_port if known else 0
    management = str(at(scope.cache.get(INGRESS_CONFIGS, "cluster"), "spec.domain") or "")
    if port and ingress.passed_through(scope.spec, management) and await scope.ctx.client.has(ROUTES):
        objects = ingress.passthrough(scope.params, scope.spec, domain, port)
        await asyncio.gather(*(scope.cache.apply(one) for one in objects))
    return Learned(made=tuple(made.values()))
