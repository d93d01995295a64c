"""The look-up tables HAProxy works from. Its configuration never changes; these do, and it takes them in while running.

`count` says how many addresses a host has, `address` gives each of them by number, `end` names hosts whose TLS the
router ends, `options` say what annotations ask for. Every row knows whose it is, so that one that cannot be taken
costs nobody else anything.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.api.paths import at
from hcp.router.admission import ANY, Decision, termination
from hcp.router.options import Options, prefixes

TLS_COUNT = "tls-count"
TLS_ADDRESS = "tls-address"
TLS_END = "tls-end"
# What annotations ask for, by the digest of a place or by the name of a TLS connection, and who may come there.
OPTIONS, TLS_OPTIONS, ALLOWED = "options", "tls-options", "allowed"


@dataclass(frozen=True, slots=True)
class Web:
    """The tables of one of the two kinds of web: requests are looked up by host and path."""

    count: str
    address: str


HTTP = Web("http-count", "http-address")
# Where the router itself ends TLS.
HTTPS = Web("https-count", "https-address")
# Addresses first: a host that grows must not be asked for an address that is not there yet. Nor is a place open before
# it is known who may come there.
PLAIN = (ALLOWED, OPTIONS, TLS_OPTIONS, TLS_ADDRESS, TLS_COUNT, HTTP.address, HTTP.count)
ENDING = (HTTPS.address, HTTPS.count, TLS_END)
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


# What requests are looked up by ends so: host, path, this. Places are whole elements of paths.
END = "/|"
# Backends of HAProxy: as usual, with what annotations ask for, with HTTP/2, with TLS.
PODS, WITH_OPTIONS, PLAIN_HTTP2, TRUSTED = "pods-http", "pods-options", "pods-h2c", "pods-trusted"
# Stands where pods are spoken to without TLS.
NO_TRUST = "plain"
# Stands where pods speak HTTP/2 without TLS.
HTTP2 = "h2c"
# The row of a place whose requests are sent to HTTPS.
REDIRECT, REDIRECT_FOREVER = "redirect", "redirect-forever"
# The end of a row whose requests have options.
OPTIONS_MARK = "@options"


@dataclass(frozen=True, slots=True)
class Place:
    """A host, or `*.domain`, and a path in it."""

    name: str
    path: str
    exact: bool = False

    @property
    def key(self) -> str:
        """A beginning of what requests are looked up by; an exact path is all of it, and so longer than any other."""
        return f"{self.name}{self.path or '/'}{END}" if self.exact else f"{self.name}{self.path.rstrip('/')}/"


# Of a Route that asks for nothing by annotations.
AS_ALL = Options()


@dataclass(slots=True)
class Maps:
    """The contents of every table, and the key of the Route behind each row."""

    tables: dict[str, dict[str, str]] = field(default_factory=lambda: {name: {} for name in ORDER})
    owners: dict[tuple[str, str], str] = field(default_factory=dict)

    def add_tls(self, owner: str, name: str, addresses: list[str], options: Options = AS_ALL) -> None:
        if addresses:
            if options.any:
                self._options(owner, TLS_OPTIONS, name, hashlib.sha256(name.encode()).hexdigest()[:32], options)
            self._put(owner, TLS_COUNT, name, str(len(addresses)))
            self._addresses(owner, TLS_ADDRESS, name, addresses)

    def add_web(
        self, owner: str, web: Web, place: Place, addresses: list[str], trust: str = "", options: Options = AS_ALL
    ) -> None:
        """The longest place that fits is taken; the value names it by its digest, and who the pod's TLS is checked by.

        A place is whole elements of a path: requests are looked up with a slash behind them.
        """
        if addresses:
            digest = hashlib.sha256(f"{place.exact} {place.key}".encode()).hexdigest()[:32]
            mark = OPTIONS_MARK if options.any else ""
            backend = {"": WITH_OPTIONS if mark else PODS, HTTP2: PLAIN_HTTP2}.get(trust, TRUSTED)
            self._put(owner, web.count, place.key, f"{len(addresses)}@{digest}@{backend}@{trust or NO_TRUST}{mark}")
            if mark:
                self._options(owner, OPTIONS, digest, digest, options)
            self._addresses(owner, web.address, digest, addresses)

    def add_end(self, owner: str, name: str) -> None:
        self._put(owner, TLS_END, name, "1")

    def add_redirect(self, owner: str, place: Place, *, forever: bool = False) -> None:
        self._put(owner, HTTP.count, place.key, REDIRECT_FOREVER if forever else REDIRECT)

    def _addresses(self, owner: str, table: str, key: str, addresses: list[str]) -> None:
        for number, address in enumerate(addresses):
            self._put(owner, table, f"{key}#{number}", address)

    def _options(self, owner: str, table: str, key: str, name: str, options: Options) -> None:
        self._put(owner, table, key, options.row(name))
        for network in options.networks:
            for prefix in prefixes(network):
                self._put(owner, ALLOWED, f"{name}/{prefix}", "1")

    def _put(self, owner: str, table: str, key: str, value: str) -> None:
        self.tables[table][key] = value
        self.owners[table, key] = owner


def build(
    decisions: Iterable[Decision],
    routes: Mapping[str, Mapping[str, Any]],
    addresses: Mapping[str, list[str]],
    http2: Container[str] = (),
) -> Maps:
    """Tables for all admitted Routes. A Route without ready endpoints is left out: its clients are refused at once.

    `http2`: keys of those whose pods speak HTTP/2 without TLS.
    """
    maps = Maps()
    for decision in decisions:
        if not decision.admitted:
            continue
        route = routes[decision.key]
        spec = route.get("spec") or {}
        found, how = addresses.get(decision.key, []), termination(route)
        place = Place(decision.name, str(spec.get("path") or ""), bool(spec.get("exactPath")))
        insecure = at(spec, "tls.insecureEdgeTerminationPolicy")
        trust = trust_name(str(at(spec, "tls.destinationCACertificate"))) if how == "reencrypt" else ""
        trust = trust or (HTTP2 if decision.key in http2 else "")
        if how == "passthrough":
            maps.add_tls(decision.key, decision.name, found, decision.options)
        elif how:
            maps.add_web(decision.key, HTTPS, place, found, trust, decision.options)
            if decision.name != ANY:
                maps.add_end(decision.key, decision.name)
        if spec.get("redirect") and not how:
            maps.add_redirect(decision.key, place, forever=spec["redirect"] == 301)
        elif how and insecure == "Redirect":
            maps.add_redirect(decision.key, place)
        elif not how or (how != "passthrough" and insecure == "Allow"):
            maps.add_web(decision.key, HTTP, place, found, trust, decision.options)
    return maps


def trust_name(authority: str) -> str:
    """How HAProxy calls who checks the certificates of pods."""
    return f"ca-{hashlib.sha256(authority.encode()).hexdigest()[:24]}"
