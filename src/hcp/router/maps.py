"""The look-up tables HAProxy works from. Its configuration never changes; these do, and it takes them in while running.

`count` says how many addresses a host has, `address` gives each of them by number, `exact` is `count` for single paths,
`redirect` says which HTTP requests are sent to HTTPS, `end` names hosts whose TLS the router ends. Every row knows
whose it is, so that one that cannot be taken costs nobody else anything.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.api.paths import at
from hcp.router.admission import Decision, termination

TLS_COUNT = "tls-count"
TLS_ADDRESS = "tls-address"
TLS_END = "tls-end"
HTTP_REDIRECT = "http-redirect"


@dataclass(frozen=True, slots=True)
class Web:
    """The tables of one of the two kinds of web: requests are looked up by host and path."""

    exact: str
    count: str
    address: str


HTTP = Web("http-exact", "http-count", "http-address")
# Where the router itself ends TLS.
HTTPS = Web("https-exact", "https-count", "https-address")
# Addresses first: a host that grows must not be asked for an address that is not there yet.
PLAIN = (TLS_ADDRESS, TLS_COUNT, HTTP.address, HTTP.count, HTTP.exact, HTTP_REDIRECT)
ENDING = (HTTPS.address, HTTPS.count, HTTPS.exact, TLS_END)
ORDER = (*PLAIN, *ENDING)


# A row is sent in one command together with others; none of ours comes near this.
MAX_ROW = 4000
_WORD = re.compile(r"[!-~]+", re.ASCII)


def problem(key: str, value: str) -> str | None:
    """Why a row must not reach HAProxy: it would be read as several rows, or as a command."""
    if not (_WORD.fullmatch(key) and _WORD.fullmatch(value)) or key.startswith("#"):
        return "a name in it has characters that no table can hold"
    if len(key) + len(value) > MAX_ROW:
        return "its names are too long"
    return None


# Stands where pods are spoken to without TLS.
NO_TRUST = "plain"


@dataclass(frozen=True, slots=True)
class Place:
    """A host, or `*.domain`, and a path in it."""

    name: str
    path: str
    exact: bool = False

    @property
    def key(self) -> str:
        return f"{self.name}{self.path or '/'}" if self.exact else f"{self.name}{self.path.rstrip('/')}/"


@dataclass(slots=True)
class Maps:
    """The contents of every table, and the key of the Route behind each row."""

    tables: dict[str, dict[str, str]] = field(default_factory=lambda: {name: {} for name in ORDER})
    owners: dict[tuple[str, str], str] = field(default_factory=dict)

    def add_tls(self, owner: str, name: str, addresses: list[str]) -> None:
        if addresses:
            self._put(owner, TLS_COUNT, name, str(len(addresses)))
            self._addresses(owner, TLS_ADDRESS, name, addresses)

    def add_web(self, owner: str, web: Web, place: Place, addresses: list[str], trust: str = "") -> None:
        """The longest place that fits is taken; the value names it by its digest, and who the pod's TLS is checked by.

        A place is whole elements of a path: requests are looked up with a slash behind them.
        """
        if addresses:
            digest = hashlib.sha256(f"{place.exact} {place.key}".encode()).hexdigest()[:32]
            table = web.exact if place.exact else web.count
            self._put(owner, table, place.key, f"{len(addresses)}@{digest}@{trust or NO_TRUST}")
            self._addresses(owner, web.address, digest, addresses)

    def add_end(self, owner: str, name: str) -> None:
        self._put(owner, TLS_END, name, "1")

    def add_redirect(self, owner: str, place: Place) -> None:
        self._put(owner, HTTP_REDIRECT, place.key if not place.exact else f"{place.key}/", "https")

    def _addresses(self, owner: str, table: str, key: str, addresses: list[str]) -> None:
        for number, address in enumerate(addresses):
            self._put(owner, table, f"{key}#{number}", address)

    def _put(self, owner: str, table: str, key: str, value: str) -> None:
        self.tables[table][key] = value
        self.owners[table, key] = owner


def build(
    decisions: Iterable[Decision], routes: Mapping[str, Mapping[str, Any]], addresses: Mapping[str, list[str]]
) -> Maps:
    """Tables for all admitted Routes. A Route without ready endpoints is left out: its clients are refused at once."""
    maps = Maps()
    for decision in decisions:
        if not decision.admitted:
            continue
        route = routes[decision.key]
        spec = route.get("spec") or {}
        found, how = addresses.get(decision.key, []), termination(route)
        place = Place(decision.name, str(spec.get("path") or ""), bool(spec.get("exactPath")))
        insecure = at(spec, "tls.insecureEdgeTerminationPolicy")
        if how == "passthrough":
            maps.add_tls(decision.key, decision.name, found)
        elif how:
            trust = trust_name(str(at(spec, "tls.destinationCACertificate"))) if how == "reencrypt" else ""
            maps.add_web(decision.key, HTTPS, place, found, trust)
            maps.add_end(decision.key, decision.name)
        if how and insecure == "Redirect":
            maps.add_redirect(decision.key, place)
        elif not how or (how != "passthrough" and insecure == "Allow"):
            maps.add_web(decision.key, HTTP, place, found, trust if how == "reencrypt" else "")
    return maps


def trust_name(authority: str) -> str:
    """How HAProxy calls who checks the certificates of pods."""
    return f"ca-{hashlib.sha256(authority.encode()).hexdigest()[:24]}"
