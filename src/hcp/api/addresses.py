"""Whether a text is an address or a network; what to say about a bad one is the caller's."""

from __future__ import annotations

import ipaddress


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def in_url(host: str) -> str:
    """A host as URLs have it: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host


def is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True
