"""Which Route gets which host: pure decisions over all Routes at once.

The oldest claim wins. A second claimant is told so in its status, and takes over by itself once the first one is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Route = Mapping[str, Any]
MAX_DNS_LABEL = 63
ROUTER_NAME = "default"
ADMITTED = "Admitted"


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one Route."""

    key: str
    host: str
    admitted: bool
    reason: str = ""
    message: str = ""
    wildcard: bool = False

    @property
    def name(self) -> str:
        """The host as it is looked up: with the first label replaced where a whole subdomain is claimed."""
        return wildcard_of(self.host) if self.wildcard else self.host


def key_of(route: Route) -> str:
    metadata = route["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def wildcard_of(host: str) -> str:
    return "*." + host.partition(".")[2]


def default_host(name: str, namespace: str, domain: str) -> str:
    """The host of a Route that names none; a first label that would be too long ends in a digest instead."""
    label = f"{name}-{namespace}".replace(".", "-")
    if len(label) > MAX_DNS_LABEL:
        digest = hashlib.sha256(label.encode()).hexdigest()[:8]
        label = f"{label[: MAX_DNS_LABEL - 9].rstrip('-')}-{digest}"
    return f"{label}.{domain}"


def wanted_host(route: Route, domain: str) -> str:
    """The host a Route asks for, or the one made for it; empty when neither is possible."""
    spec = route.get("spec") or {}
    if spec.get("host"):
        return str(spec["host"]).lower()
    if not domain:
        return ""
    if spec.get("subdomain"):
        return f"{spec['subdomain']}.{domain}".lower()
    metadata = route["metadata"]
    return default_host(metadata["name"], metadata.get("namespace", ""), domain)


def termination(route: Route) -> str:
    """passthrough, edge, reencrypt, or empty for plain HTTP."""
    return str(((route.get("spec") or {}).get("tls") or {}).get("termination") or "")


def _problem(route: Route, host: str) -> tuple[str, str] | None:
    if not host:
        return "NoDomain", "The Route names no host and the router knows no apps domain to make one from."
    if len(host) > 253 or any(not part or len(part) > MAX_DNS_LABEL for part in host.split(".")):
        return "InvalidHost", f"{host!r} is not a usable DNS name."
    how = termination(route)
    if how not in ("", "passthrough"):
        return "UnsupportedTermination", f"This router ends no TLS itself: {how} is not served, passthrough is."
    policy = (route.get("spec") or {}).get("wildcardPolicy") or "None"
    if policy not in ("None", "Subdomain"):
        return "UnsupportedWildcardPolicy", f"The wildcard policy {policy!r} is not known."
    if policy == "Subdomain" and "." not in host:
        return "InvalidHost", f"{host!r} has no domain whose names could be taken."
    return None


def decide(routes: Iterable[Route], domain: str) -> list[Decision]:
    """A decision for every Route, oldest first."""
    ordered = sorted(routes, key=lambda one: (one["metadata"].get("creationTimestamp") or "~", key_of(one)))
    owners: dict[str, str] = {}
    claims: set[tuple[str, str]] = set()
    decisions = []
    for route in ordered:
        key = key_of(route)
        host = wanted_host(route, domain)
        spec = route.get("spec") or {}
        wildcard = spec.get("wildcardPolicy") == "Subdomain"
        problem = _problem(route, host)
        if problem:
            decisions.append(Decision(key, host, False, *problem, wildcard=wildcard))
            continue
        name = wildcard_of(host) if wildcard else host
        namespace = key.partition("/")[0]
        claim = (name, str(spec.get("path") or "") if not termination(route) else "")
        owner = owners.setdefault(name, namespace)
        if owner != namespace or claim in claims:
            message = f"{name} is already claimed by another Route" + (
                f" in namespace {owner}." if owner != namespace else " with the same path."
            )
            decisions.append(Decision(key, host, False, "HostAlreadyClaimed", message, wildcard))
            continue
        claims.add(claim)
        decisions.append(Decision(key, host, True, wildcard=wildcard))
    return decisions


def status_of(route: Route, decision: Decision, now: str, canonical: str) -> list[dict[str, Any]]:
    """The wanted `status.ingress`: our entry after those of other routers, with a time that moves only on change."""
    old = list((route.get("status") or {}).get("ingress") or [])
    mine: dict[str, Any] = next((one for one in old if one.get("routerName") == ROUTER_NAME), {})
    condition: dict[str, Any] = {"type": ADMITTED, "status": "True" if decision.admitted else "False"}
    if decision.reason:
        condition |= {"reason": decision.reason, "message": decision.message}
    before: dict[str, Any] = next((one for one in mine.get("conditions") or [] if one.get("type") == ADMITTED), {})
    same = before.get("status") == condition["status"] and before.get("lastTransitionTime")
    condition["lastTransitionTime"] = before["lastTransitionTime"] if same else now
    entry: dict[str, Any] = {"host": decision.host, "routerName": ROUTER_NAME, "conditions": [condition]}
    entry["wildcardPolicy"] = "Subdomain" if decision.wildcard else "None"
    if canonical:
        entry["routerCanonicalHostname"] = canonical
    return [one for one in old if one.get("routerName") != ROUTER_NAME] + [entry]
