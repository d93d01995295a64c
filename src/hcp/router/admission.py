"""Which Route gets which host: pure decisions over all Routes at once.

The first claim wins and stays, whatever others edit. A later claimant is told so in its status, and takes over by
itself once the first one is gone. Whatever is wrong with a Route is said in that Route and touches no other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hcp.api.paths import at
from hcp.router import hosts
from hcp.router.backends import SEPARATOR
from hcp.router.claims import (
    ADMITTED,
    ROUTER_NAME,
    Granted,
    Route,
    admitted_condition,
    name_in,
    own_entry,
    place,
    wildcard_of,
)
from hcp.router.options import Options, Unreadable, read

MAX_MESSAGE = 1024
# The name of who answers wherever nobody else does.
ANY = "*"


@dataclass(frozen=True, slots=True)
class Policy:
    """What the router was told about giving out hosts."""

    domain: str = ""
    # Whether a host may be claimed that lies under a wildcard of another namespace.
    foreign_wildcards: bool = False
    # Whether it has a certificate to end TLS with.
    ends_tls: bool = False
    # Of which kinds one namespace, the first, may answer for names that nobody claims.
    any_host: frozenset[str] = frozenset()
    # Below which hosts are made up, if not below the domain.
    apps_domain: str = ""

    @property
    def new_hosts(self) -> str:
        return self.apps_domain if hosts.is_host(self.apps_domain) else self.domain


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one Route."""

    key: str
    host: str
    admitted: bool
    reason: str = ""
    message: str = ""
    wildcard: bool = False
    # What its annotations ask for.
    options: Options = field(default=Options())

    @property
    def name(self) -> str:
        """The host as it is looked up: with the first label replaced where a whole subdomain is claimed."""
        return wildcard_of(self.host) if self.wildcard else self.host

    def refused(self, reason: str, message: str) -> Decision:
        return replace(self, admitted=False, reason=reason, message=message[:MAX_MESSAGE])


def key_of(route: Route) -> str:
    metadata = route["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def default_host(name: str, namespace: str, domain: str) -> str:
    """The host of a Route that names none; a first label that would be too long ends in a digest instead."""
    label = f"{name}-{namespace}".replace(".", "-")
    if len(label) > hosts.MAX_LABEL:
        digest = hashlib.sha256(label.encode()).hexdigest()[:8]
        label = f"{label[: hosts.MAX_LABEL - 9].rstrip('-')}-{digest}"
    return f"{label}.{domain}"


def wanted_host(route: Route, domain: str) -> str:
    """The host a Route asks for, or the one made for it; empty when neither is possible."""
    spec = route.get("spec") or {}
    if spec.get("anyHost") and SEPARATOR in str(route["metadata"]["name"]):
        return ANY
    if spec.get("host"):
        return str(spec["host"]).lower()
    if not domain:
        return ""
    if spec.get("subdomain"):
        return f"{spec['subdomain']}.{domain}".lower()
    metadata = route["metadata"]
    return default_host(metadata["name"], metadata.get("namespace", ""), domain.lower())


def termination(route: Route) -> str:
    """passthrough, edge, reencrypt, or empty for plain HTTP."""
    return str(at(route, "spec.tls.termination") or "")


def _problem(route: Route, host: str, policy: Policy) -> tuple[str, str] | None:
    domain, spec = policy.domain, route.get("spec") or {}
    if not host:
        return "NoDomain", "The Route names no host and the router knows no apps domain to make one from."
    if host == ANY and spec["anyHost"] not in policy.any_host:
        return "NoHost", "It names no host, and this router lets nobody answer for names that nobody claims."
    wrong = hosts.problem(spec, host)
    if wrong:
        return ("InvalidPath" if wrong.startswith("spec.path") else "InvalidHost"), wrong
    if (wrong_tls := _tls_problem(route, policy)) is not None:
        return wrong_tls
    wildcards = spec.get("wildcardPolicy") or "None"
    if wildcards not in ("None", "Subdomain"):
        return "UnsupportedWildcardPolicy", f"The wildcard policy {hosts.shown(wildcards)} is not known."
    if wildcards == "Subdomain" and "." not in host:
        return "InvalidHost", f"{host!r} has no domain whose names could be taken."
    for shared in {domain, policy.new_hosts}:
        if wildcards == "Subdomain" and wildcard_of(host) == f"*.{shared.lower()}":
            return (
                "SharedDomain",
                f"The names in {shared} belong to all namespaces: no Route can take every one of them.",
            )
    return None


def _tls_problem(route: Route, policy: Policy) -> tuple[str, str] | None:
    how = termination(route)
    if how in ("", "passthrough"):
        return None
    if how not in ("edge", "reencrypt") or not policy.ends_tls:
        return (
            "UnsupportedTermination",
            f"This router ends no TLS itself: {hosts.shown(how)} is not served, passthrough is.",
        )
    if how == "reencrypt" and not at(route, "spec.tls.destinationCACertificate"):
        return (
            "NoDestinationCA",
            "spec.tls.destinationCACertificate is empty: say who signed the certificate that the pods show.",
        )
    if bool(at(route, "spec.tls.certificate")) != bool(at(route, "spec.tls.key")):
        return "IncompleteCertificate", "spec.tls needs both certificate and key, or none of them."
    return _external_problem(at(route, "spec.tls") or {})


def _external_problem(tls: Mapping[str, Any]) -> tuple[str, str] | None:
    """The Secret was read before: `taken` says that the certificate is that of the Secret."""
    external = tls.get("externalCertificate") or {}
    name = external.get("name")
    if not name or external.get("taken"):
        return None
    if tls.get("certificate"):
        return "UnsupportedCertificate", "spec.tls names both certificate and externalCertificate: write one of them."
    return (
        "ExternalCertificateNotFound",
        f"There is no Secret {hosts.shown(name)} of type kubernetes.io/tls with tls.crt and tls.key in its namespace.",
    )


def first_look(route: Route, policy: Policy) -> Decision:
    """What a Route asks for, and what is wrong with it by itself."""
    key = key_of(route)
    try:
        host = wanted_host(route, policy.new_hosts)
        wildcard = at(route, "spec.wildcardPolicy") == "Subdomain"
        asked = Decision(key, host, True, wildcard=wildcard)
        problem = _problem(route, host, policy)
        options = read(route)
    except Unreadable as error:
        return asked.refused("InvalidAnnotation", str(error))
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        return Decision(key, "", False, "InvalidRoute", f"The Route cannot be read: {error}"[:MAX_MESSAGE])
    if problem is None:
        said = "; ".join(options.ignored)[:MAX_MESSAGE]
        return replace(asked, options=options, reason="AnnotationsIgnored" if said else "", message=said)
    if not hosts.is_host(host):
        asked = replace(asked, host="")
    return asked.refused(*problem)


class _Table:
    """The names that are given away."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._owners: dict[str, str] = {}
        self._claims: set[tuple[str, str, str]] = set()
        # Hosts whose TLS is passed on, or ended here: it cannot be both.
        self._passing: dict[str, bool] = {}

    def ask(self, decision: Decision, route: Route) -> Decision:
        """The decision with the host given, or refused because of somebody who was first."""
        name, namespace = decision.name, decision.key.partition("/")[0]
        spec = route.get("spec") or {}
        how = termination(route)
        path = f"{spec.get('path') or ''}{' exactly' if spec.get('exactPath') else ''}"
        if spec.get("when") and SEPARATOR in decision.key:
            # Of a Gateway's routes one may have a place for some requests, and another for others.
            path = f"{path} {spec['when']}"
        # Of a Gateway's routes one may have a place in plain HTTP, and another the same place with TLS.
        schemes = (spec["scheme"],) if spec.get("scheme") else ("http", "https")
        wanted = {(name, "" if how == "passthrough" else path, scheme) for scheme in schemes}
        owner = self._owners.get(name, namespace)
        if owner != namespace:
            return decision.refused(
                "HostAlreadyClaimed", f"{name} is already claimed by another Route in namespace {owner}."
            )
        if wanted & self._claims:
            return decision.refused(
                "HostAlreadyClaimed", f"{name} is already claimed by another Route with the same path."
            )
        if how and self._passing.get(name, how == "passthrough") != (how == "passthrough"):
            return decision.refused(
                "HostAlreadyClaimed", f"{name} is already claimed by another Route with another kind of termination."
            )
        above = self._owners.get(wildcard_of(name), namespace)
        if not decision.wildcard and above != namespace and not self._policy.foreign_wildcards:
            return decision.refused(
                "HostUnderForeignWildcard",
                f"{name} lies under {wildcard_of(name)}, which a Route in namespace {above} claimed before. "
                "The router's option --allow-hosts-under-foreign-wildcards permits it.",
            )
        self._owners[name] = namespace
        self._claims |= wanted
        if how:
            self._passing[name] = how == "passthrough"
        return decision


def decide(
    routes: Iterable[Route],
    policy: Policy,
    granted: Granted | None = None,
    refused: Mapping[str, str] | None = None,
) -> list[Decision]:
    """A decision for every Route. `refused` has those HAProxy would not take, with its words, by key."""
    return settle([(route, first_look(route, policy)) for route in routes], policy, granted, refused)


def settle(
    looked: Iterable[tuple[Route, Decision]],
    policy: Policy,
    granted: Granted | None = None,
    refused: Mapping[str, str] | None = None,
) -> list[Decision]:
    """The same for Routes that were looked at by themselves before."""
    known = granted or {}
    table = _Table(policy)
    decisions = []
    for route, decision in sorted(looked, key=lambda pair: place(pair[0], pair[1].name, known)):
        words = (refused or {}).get(decision.key)
        if not decision.admitted:
            decisions.append(decision)
        elif words:
            decisions.append(decision.refused("NotServable", f"HAProxy does not take this Route: {words}"))
        else:
            decisions.append(table.ask(decision, route))
    return decisions


def status_of(route: Route, decision: Decision, now: str, canonical: str) -> list[dict[str, Any]]:
    """The wanted `status.ingress`: our entry after those of other routers.

    Its time moves only on change, and a change of the host is one: it says since when the Route holds that host.
    """
    old = list(at(route, "status.ingress") or [])
    mine = own_entry(route)
    condition: dict[str, Any] = {"type": ADMITTED, "status": "True" if decision.admitted else "False"}
    if decision.reason:
        condition |= {"reason": decision.reason, "message": decision.message}
    before = admitted_condition(mine)
    same = before.get("status") == condition["status"] and before.get("lastTransitionTime")
    kept = same and (not decision.admitted or name_in(mine) == decision.name)
    condition["lastTransitionTime"] = before["lastTransitionTime"] if kept else now
    entry: dict[str, Any] = {"host": decision.host, "routerName": ROUTER_NAME, "conditions": [condition]}
    entry["wildcardPolicy"] = "Subdomain" if decision.wildcard else "None"
    if canonical:
        entry["routerCanonicalHostname"] = canonical
    return [one for one in old if one.get("routerName") != ROUTER_NAME] + [entry]
