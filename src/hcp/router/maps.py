"""The look-up tables HAProxy works from. Its configuration never changes; these do, and it takes them in while running.

`count` says how many addresses a host has, `address` gives each of them by number, `redirect` says which HTTP requests
are sent to HTTPS. Every row knows whose it is, so that one that cannot be taken costs nobody else anything.
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
HTTP_COUNT = "http-count"
HTTP_ADDRESS = "http-address"
HTTP_REDIRECT = "http-redirect"
# Addresses first: a host that grows must not be asked for an address that is not there yet.
ORDER = (TLS_ADDRESS, TLS_COUNT, HTTP_ADDRESS, HTTP_COUNT, HTTP_REDIRECT)


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


@dataclass(slots=True)
class Maps:
    """The contents of every table, and the key of the Route behind each row."""

    tables: dict[str, dict[str, str]] = field(default_factory=lambda: {name: {} for name in ORDER})
    owners: dict[tuple[str, str], str] = field(default_factory=dict)

    def add_tls(self, owner: str, name: str, addresses: list[str]) -> None:
        if addresses:
            self._put(owner, TLS_COUNT, name, str(len(addresses)))
            self._addresses(owner, TLS_ADDRESS, name, addresses)

    def add_http(self, owner: str, name: str, path: str, addresses: list[str]) -> None:
        """HTTP is looked up by the longest prefix of host and path; the value names that prefix by its digest."""
        key = f"{name}{path or '/'}"
        if addresses:
            digest = hashlib.sha256(key.encode()).hexdigest()[:32]
            self._put(owner, HTTP_COUNT, key, f"{len(addresses)}@{digest}")
            self._addresses(owner, HTTP_ADDRESS, digest, addresses)

    def add_redirect(self, owner: str, name: str) -> None:
        self._put(owner, HTTP_REDIRECT, f"{name}/", "https")

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
        found = addresses.get(decision.key, [])
        if termination(route) == "passthrough":
            maps.add_tls(decision.key, decision.name, found)
            if at(spec, "tls.insecureEdgeTerminationPolicy") == "Redirect":
                maps.add_redirect(decision.key, decision.name)
        else:
            maps.add_http(decision.key, decision.name, str(spec.get("path") or ""), found)
    return maps
