"""The way to a hosted cluster's default ingress in another infra cluster: a Service in front of the machines and a
wildcard Route that leads TLS there untouched.

The namespace is somebody else's and may hold what belongs to several hosted clusters. Names there are made from what
the author of a HostedCluster wrote, so nothing is touched that does not carry this cluster's infra id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api import conditions as c
from hcp.api.names import LABEL_INFRA_ID
from hcp.api.paths import annotations_of, at, labels_of
from hcp.errors import HcpError
from hcp.kube.errors import Forbidden, NotFound
from hcp.kube.resources import ROUTES, SERVICES
from hcp.kubevirt import granted
from hcp.kubevirt.infra import Infra
from hcp.kubevirt.infra_domain import NoDomain, apps_domain
from hcp.runtime import apply_if_changed

Object = dict[str, Any]
ADMITTED = "Admitted"
# In how many seconds to look again: nothing is watched there.
STEADY, AGAIN, SOON = 300.0, 30.0, 5.0


@dataclass(frozen=True, slots=True)
class Right:
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


_VERBS = ("get", "list", "watch", "create", "patch", "delete")
# What of the guides' Role this needs.
RIGHTS = (
    Right("", ("services",), _VERBS),
    Right("route.openshift.io", ("routes",), _VERBS),
    Right("route.openshift.io", ("routes/custom-host",), ("create",)),
)


@dataclass(frozen=True)
class Wish:
    """What is wanted there; while the cluster has no base domain, only to know which it can have."""

    # Of the kubeconfig: another one may be another cluster, or have other rights.
    fingerprint: str
    infra_id: str
    base: str = ""
    # Service and Route, where names below the infra cluster's own domain are asked for.
    way: tuple[Mapping[str, Any], ...] = ()
    # The Service that the owner of another domain makes, with the name external-dns is told.
    balancer: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Found:
    """What became of it."""

    # The infra cluster's own, where it was asked for; a base domain that is another is led here by its owner.
    domain: str = ""
    problem: str = ""
    todo: str = ""
    reason: str = ""
    again: float = STEADY
    # The owner's Service, as far as it is needed.
    service: Mapping[str, Any] | None = None


class _Stop(HcpError):
    """There is no way, and this is what to say."""

    def __init__(self, found: Found) -> None:
        super().__init__(found.problem)
        self.found = found


async def lead(infra: Infra, wish: Wish) -> Found:
    """Make the way, or find out why there is none. Errors of the API server besides missing rights are raised."""
    try:
        domain = await _domain(infra, wish) if wish.way or not wish.base else ""
        if not wish.base:
            return Found(domain=domain)
        if wish.way and domain == wish.base:
            return await _make(infra, wish)
        # Where the domain was asked for, that may have cost two writes.
        return Found(domain=domain, service=await _owners(infra, wish), again=STEADY if wish.way else AGAIN)
    except _Stop as stop:
        return stop.found
    except NoDomain as error:
        # Asking it costs two writes, and what it takes is work of a person.
        return Found(problem=str(error), todo="its owner has to install one, or to say its apps domain")
    except Forbidden as error:
        return await _lacking(infra, error)


async def _domain(infra: Infra, wish: Wish) -> str:
    """A way that is there was made below the right domain: nothing is asked or tried a second time."""
    try:
        ours = await infra.client.list(ROUTES, infra.namespace, f"{LABEL_INFRA_ID}={wish.infra_id}")
    except NotFound:
        todo = "publish the ingress by a Service in front of the machines there, below a base domain of your own"
        raise _Stop(Found(problem="the infra cluster serves no Routes", todo=todo)) from None
    wanted = next((one for one in wish.way if one["kind"] == ROUTES.kind), None)
    for live in ours:
        if wanted and _named(live) == _named(wanted) and at(live, "spec.host") == wanted["spec"]["host"]:
            return wish.base
    return await apps_domain(infra, wish.infra_id)


def _named(thing: Mapping[str, Any]) -> str:
    return str(thing["metadata"]["name"])


async def _make(infra: Infra, wish: Wish) -> Found:
    route: Object = {}
    for wanted in wish.way:
        resource = ROUTES if wanted["kind"] == ROUTES.kind else SERVICES
        live = await infra.client.get_or_none(resource, _named(wanted), infra.namespace)
        if live is not None and labels_of(live).get(LABEL_INFRA_ID) != wish.infra_id:
            what = f"{wanted['kind']} {_named(wanted)} in namespace {infra.namespace} of the infra cluster"
            todo = "remove it there, or make the cluster anew with another spec.platform.kubevirt.generateID"
            return Found(
                domain=wish.base, problem=f"{what} is somebody else's", todo=todo, reason=c.NAME_TAKEN, again=AGAIN
            )
        route = await apply_if_changed(infra.client, None, {**wanted})
    return _admission(route, infra.namespace, wish.base)


def _admission(route: Mapping[str, Any], namespace: str, base: str) -> Found:
    """Words of the infra cluster are not repeated: only what is known of them counts."""
    said = [
        one
        for entry in at(route, "status.ingress") or []
        for one in entry.get("conditions") or []
        if one.get("type") == ADMITTED
    ]
    if any(one.get("status") == "True" for one in said):
        return Found(domain=base)
    what = f"Route {_named(route)} in namespace {namespace} of the infra cluster"
    if not said:
        problem, todo = f"{what} is not admitted yet", "its router has to admit it"
        return Found(base, problem, todo, c.ROUTE_NOT_ADMITTED, SOON)
    if any(one.get("reason") == "HostAlreadyClaimed" for one in said):
        problem = f"the host of {what} is taken by another Route there"
        todo = "remove that one, or make the cluster anew with another name or dns.baseDomainPrefix"
        return Found(base, problem, todo, c.ROUTE_NOT_ADMITTED, AGAIN)
    todo = "its owner lets the default IngressController admit wildcards (wildcardPolicy: WildcardsAllowed)"
    return Found(base, f"{what} is not admitted by its router", todo, c.ROUTE_NOT_ADMITTED, AGAIN)


async def _owners(infra: Infra, wish: Wish) -> Mapping[str, Any] | None:
    """The Service in front of the machines that the owner of the domain made, told to external-dns.

    Its name is made of the cluster's, which a neighbour in the namespace may have too: only what says itself that it
    leads to these machines, and has no such name yet, is written to.
    """
    if wish.balancer is None:
        return None
    live = await infra.client.get_or_none(SERVICES, _named(wish.balancer), infra.namespace)
    leads_to = (at(live, "spec.selector") or {}).get(LABEL_INFRA_ID)
    if live is None or leads_to not in (None, wish.infra_id):
        return None
    if leads_to and not set(annotations_of(wish.balancer)) <= set(annotations_of(live)):
        await infra.client.apply({**wish.balancer})
    given = at(live, "status.loadBalancer.ingress") or []
    return {"spec": {"type": at(live, "spec.type")}, "status": {"loadBalancer": {"ingress": given}}}


async def _lacking(infra: Infra, error: Forbidden) -> Found:
    words = await granted.missing(infra.client, RIGHTS, infra.namespace)
    rights = granted.short(words) or str(error)
    todo = f"its owner has to grant {rights} (hcp rbac external-infra prints the role)"
    problem = f"rights are missing in namespace {infra.namespace} of the infra cluster"
    return Found("", problem, todo, c.INFRA_RIGHTS_MISSING, AGAIN)
