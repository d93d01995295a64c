"""The default ingress, from the first node on: its certificate, and the way to it from outside."""

from __future__ import annotations

import asyncio

from hcp.api import conditions as c
from hcp.api.names import INFRA_CREDENTIALS
from hcp.api.paths import annotations_of, at
from hcp.controlplane.params import Manifest
from hcp.controlplane.services import EXTERNAL_DNS
from hcp.guest import canary
from hcp.guest.platform.settings import apps_domain
from hcp.hostedcluster import infra_ingress, ingress
from hcp.hostedcluster.canary import Question
from hcp.hostedcluster.leaves import existing, leaves
from hcp.hostedcluster.observed import IngressState
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.resources import INGRESS_CONFIGS, ROUTES, SECRETS, SERVICES
from hcp.kubevirt.infra import credentials
from hcp.kubevirt.passthrough import Wish


async def run(scope: Scope) -> Learned | None:
    domain, known = apps_domain(scope.cluster), scope.tools.guests.state(scope.params.key).guest
    if scope.claim.foreign or not ingress.wanted(scope.spec):
        return None
    if not domain:
        return _domain_elsewhere(scope) if infra_ingress.asked(scope.spec) else None
    if not ingress.image(scope):
        return None
    management = str(at(scope.cache.get(INGRESS_CONFIGS, "cluster"), "spec.domain") or "")
    # Where names are for somebody else to lead here, nothing is known before somebody asked; and what is known inside
    # may be known a moment later in this very pass, so the version must not be reached for want of an answer.
    unasked = {"ingress": IngressState(None)} if ingress.own_domain(scope.spec, management) else {}
    begun = bool(existing(scope, [ingress.LEAF]))
    if not scope.startable or (not begun and not (known and known.nodes)):
        return Learned(seen=unasked)
    made = tuple((await leaves(scope, [ingress.leaf(domain)])).values())
    port = known.ingress_port if known else 0
    if credentials(scope.spec.get("platform") or {}):
        if not port or not (known and known.ready_nodes) or not _fingerprint(scope):
            return Learned(made=made, seen=unasked)
        there, soon = _elsewhere(scope, domain, port)
        return Learned(made=made, seen={"ingress": there}, again=soon)
    if port and ingress.passed_through(scope.spec, management) and await scope.ctx.client.has(ROUTES):
        objects = ingress.passthrough(scope.params, scope.spec, domain, port)
        await asyncio.gather(*(scope.cache.apply(one) for one in objects))
    if not unasked or not port or not (known and known.ready_nodes):
        return Learned(made=made, seen=unasked)
    state, again = await _own_domain(scope, domain, port)
    return Learned(made=made, seen={"ingress": state}, again=again)


async def _own_domain(scope: Scope, domain: str, port: int) -> tuple[IngressState, float]:
    """Whether names below it lead to the router; while they do not, what is missing."""
    problem, again = _from_outside(scope, domain)
    if not problem:
        return IngressState(problem), again
    p = scope.params
    # Made by a person, so it is not among what is followed.
    service = await scope.ctx.client.get_or_none(SERVICES, ingress.balancer(p), p.namespace)
    if service is not None and annotations_of(service).get(EXTERNAL_DNS) != f"*.{domain}":
        await scope.ctx.client.apply(ingress.named(p, domain))
    return IngressState(problem, ingress.todo(p, domain, port, service)), again


def _from_outside(scope: Scope, domain: str) -> tuple[str | None, float]:
    question = Question(canary.host(domain), scope.authorities["root-ca"].trusted)
    return scope.tools.canary.look(scope.cluster, question)


def _domain_elsewhere(scope: Scope) -> Learned | None:
    """Names of a cluster whose machines are elsewhere are below the domain there; what is known is written into the
    spec when the next pass begins."""
    fingerprint = _fingerprint(scope)
    if not fingerprint:
        return None
    found, again = scope.tools.infra_ingress.look(scope.cluster, Wish(fingerprint, scope.params.infra_id))
    if found is None or not found.problem:
        return Learned(again=again)
    text = f"{infra_ingress.FIELD} has no effect yet, {found.problem}: {found.todo}"
    return Learned(seen={"partly_acted": [*scope.seen.partly_acted, text]}, again=again)


def _elsewhere(scope: Scope, domain: str, port: int) -> tuple[IngressState, float | None]:
    """The same in an external infra cluster, of which only answers are known."""
    wish, where = _wish(scope, domain, port), infra_ingress.namespace(scope.params, scope.spec)
    if wish.way:
        found, again = scope.tools.infra_ingress.look(scope.cluster, wish)
        if found is None:
            return IngressState(None), again
        if found.problem or found.domain == wish.base:
            return IngressState(found.problem, found.todo, found.reason or c.CANARY_FAILS), again
    elif wish.base == ingress.NOBODYS:
        return IngressState(), None
    problem, again = _from_outside(scope, domain)
    if not problem:
        return IngressState(problem), again
    found, soon = scope.tools.infra_ingress.look(scope.cluster, wish)
    if found is None:
        return IngressState(problem, f"the infra cluster is asked for Service {ingress.balancer(scope.params)}"), soon
    if found.problem:
        return IngressState(problem, f"{found.problem}: {found.todo}"), min(soon, again)
    todo = ingress.todo(scope.params, domain, port, found.service, where)
    return IngressState(problem, todo), min(soon, again)


def _wish(scope: Scope, domain: str, port: int) -> Wish:
    p, spec = scope.params, scope.spec
    where = infra_ingress.namespace(p, spec)
    way: tuple[Manifest, ...] = ()
    if infra_ingress.asked(spec) and ingress.below(spec):
        way = infra_ingress.elsewhere(ingress.passthrough(p, spec, domain, port), where, p.infra_id)
    base = str(at(spec, "dns.baseDomain") or "")
    return Wish(_fingerprint(scope), p.infra_id, base, way, ingress.named(p, domain, where))


def _fingerprint(scope: Scope) -> str:
    made = scope.made.get(("Secret", INFRA_CREDENTIALS))
    return infra_ingress.fingerprint(made or scope.cache.get(SECRETS, INFRA_CREDENTIALS, scope.namespace))
