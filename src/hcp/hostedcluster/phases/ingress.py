"""The default ingress, from the first node on: its certificate, and the way to it from outside."""

from __future__ import annotations

import asyncio

from hcp.api.paths import annotations_of, at
from hcp.controlplane.services import EXTERNAL_DNS
from hcp.guest import canary
from hcp.guest.platform.settings import apps_domain
from hcp.hostedcluster import ingress
from hcp.hostedcluster.canary import Question
from hcp.hostedcluster.leaves import existing, leaves
from hcp.hostedcluster.observed import IngressState
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.resources import INGRESS_CONFIGS, ROUTES, SERVICES


async def run(scope: Scope) -> Learned | None:
    domain, known = apps_domain(scope.cluster), scope.tools.guests.state(scope.params.key).guest
    if scope.claim.foreign or not domain or not ingress.wanted(scope.spec) or not ingress.image(scope):
        return None
    begun = bool(existing(scope, [ingress.LEAF]))
    if not scope.startable or (not begun and not (known and known.nodes)):
        return None
    made = tuple((await leaves(scope, [ingress.leaf(domain)])).values())
    port = known.ingress_port if known else 0
    management = str(at(scope.cache.get(INGRESS_CONFIGS, "cluster"), "spec.domain") or "")
    if port and ingress.passed_through(scope.spec, management) and await scope.ctx.client.has(ROUTES):
        objects = ingress.passthrough(scope.params, scope.spec, domain, port)
        await asyncio.gather(*(scope.cache.apply(one) for one in objects))
    if not ingress.own_domain(scope.spec, management) or not port or not (known and known.ready_nodes):
        return Learned(made=made)
    state, again = await _own_domain(scope, domain, port)
    return Learned(made=made, seen={"ingress": state}, again=again)


async def _own_domain(scope: Scope, domain: str, port: int) -> tuple[IngressState, float]:
    """Whether names below it lead to the router; while they do not, what is missing."""
    question = Question(canary.host(domain), scope.authorities["root-ca"].trusted)
    problem, again = scope.tools.canary.look(scope.cluster, question)
    if not problem:
        return IngressState(problem), again
    p = scope.params
    # Made by a person, so it is not among what is followed.
    service = await scope.ctx.client.get_or_none(SERVICES, ingress.balancer(p), p.namespace)
    if service is not None and annotations_of(service).get(EXTERNAL_DNS) != f"*.{domain}":
        await scope.ctx.client.apply(ingress.named(p, domain))
    return IngressState(problem, ingress.todo(p, domain, port, service)), again
