"""The look-up tables HAProxy works from. Its configuration never changes; these do, and it takes them in while running.

`count` says how many addresses a host has, `address` gives each of them by number, `plain` says what is done with HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.router.admission import Decision, termination

TLS_COUNT = "tls-count"
TLS_ADDRESS = "tls-address"
HTTP_COUNT = "http-count"
HTTP_ADDRESS = "http-address"
HTTP_REDIRECT = "http-redirect"
# Addresses first: a host that grows must not be asked for an address that is not there yet.
ORDER = (TLS_ADDRESS, TLS_COUNT, HTTP_ADDRESS, HTTP_COUNT, HTTP_REDIRECT)


@dataclass(slots=True)
class Maps:
    """The contents of every table."""

    tables: dict[str, dict[str, str]] = field(default_factory=lambda: {name: {} for name in ORDER})

    def add_tls(self, name: str, addresses: list[str]) -> None:
        if addresses:
            self.tables[TLS_COUNT][name] = str(len(addresses))
            self._addresses(TLS_ADDRESS, name, addresses)

    def add_http(self, name: str, path: str, addresses: list[str]) -> None:
        """HTTP is looked up by the longest prefix of host and path, so the value repeats what the prefix was."""
        key = f"{name}{path or '/'}"
        if addresses:
            self.tables[HTTP_COUNT][key] = f"{len(addresses)}@{key}"
            self._addresses(HTTP_ADDRESS, key, addresses)

    def _addresses(self, table: str, key: str, addresses: list[str]) -> None:
        self.tables[table].update({f"{key}#{number}": address for number, address in enumerate(addresses)})


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
            maps.add_tls(decision.name, found)
            if (spec.get("tls") or {}).get("insecureEdgeTerminationPolicy") == "Redirect":
                maps.tables[HTTP_REDIRECT][f"{decision.name}/"] = "https"
        else:
            maps.add_http(decision.name, str(spec.get("path") or ""), found)
    return maps
