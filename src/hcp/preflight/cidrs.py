"""Address ranges that must not overlap: pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse(cidr: str) -> Network | None:
    try:
        return ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return None


def overlaps(wanted: Iterable[str], taken: Iterable[str]) -> list[tuple[str, str]]:
    """Every pair of a wanted and a taken range that share addresses; what is no range is left out."""
    found = []
    others = [(text, parse(text)) for text in taken]
    for one in wanted:
        network = parse(one)
        for text, other in others:
            if network is None or other is None or network.version != other.version:
                continue
            if network.overlaps(other):
                found.append((one, text))
    return found
