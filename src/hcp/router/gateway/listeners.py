"""What the listeners of a Gateway mean here: two ports, plain HTTP, TLS that ends here or is passed on. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp import pki
from hcp.api.paths import at
from hcp.router import hosts
from hcp.router.gateway import grants
from hcp.router.gateway.grants import GROUP, Reference
from hcp.runtime.conditions import Verdict

Object = Mapping[str, Any]
CONTROLLER = "hcp.openshift.io/gateway-controller"
# By namespace and name: certificate and key of a TLS Secret.
Secrets = Callable[[str, str], tuple[str, str] | None]
PORTS = {"HTTP": 80, "HTTPS": 443, "TLS": 443}
KINDS = {"HTTP": "HTTPRoute", "HTTPS": "HTTPRoute", "TLS": "TLSRoute"}
RESOLVED: Verdict = (True, "ResolvedRefs", "")


@dataclass(frozen=True, slots=True)
class Listener:
    """One of them, and what is to be said of it."""

    gateway: str
    name: str
    protocol: str
    port: int
    # Empty: every name.
    hostname: str
    accepted: Verdict
    resolved: Verdict
    allowed: Object
    certificate: tuple[str, str] | None = None
    kinds: tuple[str, ...] = ()

    @property
    def works(self) -> bool:
        return self.accepted[0] is True and self.resolved[0] is True

    def admits(self, namespace: str, live: Object | None) -> bool:
        """Whether routes of a namespace may be attached to it."""
        how = self.allowed.get("from") or "Same"
        if how == "Selector":
            return grants.selects(self.allowed.get("selector") or {}, live)
        return bool(how == "All" or (how == "Same" and namespace == self.gateway.partition("/")[0]))


def is_ours(gateway_class: Object | None) -> bool:
    return bool(at(gateway_class, "spec.controllerName") == CONTROLLER)


def of_gateway(gateway: Object, secrets: Secrets, known: Iterable[Object]) -> list[Listener]:
    """Its listeners, good or not."""
    known = list(known)
    return [_listener(gateway, one, secrets, known) for one in at(gateway, "spec.listeners") or ()]


def _listener(gateway: Object, given: Object, secrets: Secrets, known: list[Object]) -> Listener:
    meta, protocol, port = gateway["metadata"], str(given.get("protocol")), int(given.get("port") or 0)
    namespace = str(meta.get("namespace") or "")
    accepted = _accepted(given, protocol, port)
    # What is not served in this form takes no routes of any kind.
    kinds, wrong_kinds = _kinds(given, protocol) if accepted[1] != "UnsupportedValue" else ((), False)
    certificate: tuple[str, str] | None = None
    resolved = RESOLVED
    if protocol == "HTTPS":
        certificate, resolved = _certificate(given, namespace, secrets, known)
    if wrong_kinds:
        resolved = (False, "InvalidRouteKinds", f"Served here: {KINDS.get(protocol, 'none')}")
    return Listener(
        f"{namespace}/{meta['name']}",
        str(given.get("name")),
        protocol,
        port,
        str(given.get("hostname") or "").lower(),
        accepted,
        resolved,
        at(given, "allowedRoutes.namespaces") or {},
        certificate,
        kinds,
    )


def _accepted(given: Object, protocol: str, port: int) -> Verdict:
    if protocol not in PORTS:
        return False, "UnsupportedProtocol", f"Served here: {', '.join(PORTS)}"
    mode = at(given, "tls.mode") or "Terminate"
    if protocol == "TLS" and mode != "Passthrough":
        return False, "UnsupportedValue", "TLS is passed on here: write tls.mode Passthrough, or protocol HTTPS"
    if protocol == "HTTPS" and mode != "Terminate":
        return False, "UnsupportedValue", "With protocol HTTPS TLS ends here: write tls.mode Terminate, or protocol TLS"
    if port != PORTS[protocol]:
        return False, "PortUnavailable", f"This router has port {PORTS[protocol]} for {protocol}, and no other"
    return True, "Accepted", ""


def _kinds(given: Object, protocol: str) -> tuple[tuple[str, ...], bool]:
    """Kinds of routes that can be attached, and whether others were asked for too."""
    mine, asked = KINDS.get(protocol), at(given, "allowedRoutes.kinds") or ()
    if not asked:
        return ((mine,) if mine else ()), False
    found = [one for one in asked if (one.get("group") or GROUP) == GROUP and one.get("kind") == mine]
    return ((mine,) if found and mine else ()), len(found) != len(asked)


def _certificate(
    given: Object, namespace: str, secrets: Secrets, known: list[Object]
) -> tuple[tuple[str, str] | None, Verdict]:
    refs = at(given, "tls.certificateRefs") or ()
    for ref in refs:
        where, name = str(ref.get("namespace") or namespace), str(ref.get("name"))
        if (ref.get("group") or "", ref.get("kind") or "Secret") != ("", "Secret"):
            return None, (False, "InvalidCertificateRef", "Certificates are in Secrets")
        if not grants.permitted(Reference("Gateway", namespace, "", "Secret", where, name), known):
            return None, (False, "RefNotPermitted", f"No ReferenceGrant in {where} permits it")
        if pair := secrets(where, name):
            wrong = _problem(*pair)
            return (None, (False, "InvalidCertificateRef", f"The Secret {wrong}")) if wrong else (pair, RESOLVED)
    return None, (False, "InvalidCertificateRef", "There is no such Secret of type kubernetes.io/tls")


def waited_for(found: Iterable[Listener], domains: Iterable[str], *, any_host: bool) -> set[str]:
    """Names and how requests come there, as HAProxy looks them up: what no route of them has is not found.

    `domains` belong to all namespaces: nobody waits for all of their names. `any_host`: whether somebody may for any.
    """
    names = {
        f"{one.hostname or '*'}/{one.protocol.lower()}" for one in found if one.works and (one.hostname or any_host)
    }
    if "*/https" in names:
        # Who shows a certificate for any name comes before who would close the connection.
        names.discard("*/tls")
    return {one for one in names if one.startswith("*/") or _may_wait(one.partition("/")[0], domains)}


def _may_wait(name: str, domains: Iterable[str]) -> bool:
    return hosts.is_host(name.removeprefix("*.")) and not covers(name, domains)


def covers(name: str, domains: Iterable[str]) -> bool:
    """Whether a wildcard of any number of labels takes the names below one of these domains."""
    return name.startswith("*.") and any(f".{one}".endswith(name[1:]) for one in domains if one)


@functools.lru_cache(maxsize=1024)
def _problem(certificate: str, key: str) -> str:
    """Why HAProxy would not show it; empty when it would. Looked at once, however often Gateways are."""
    return pki.pair_problem(pki.KeyPair(certificate.encode(), key.encode()))


def shared(listener: str, route: str) -> str | None:
    """The name that a listener and a route have in common; empty is any name, None is none."""
    if not listener or not route:
        return listener or route
    if listener == route or (listener.startswith("*.") and route.endswith(listener[1:])):
        return route
    if route.startswith("*.") and listener.endswith(route[1:]):
        return listener
    return None
