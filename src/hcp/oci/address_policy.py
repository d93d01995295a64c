"""Where a registry client may connect to.

On a person's own machine: anywhere. The operator is told names of registries by people who are not trusted, and stands
inside the management cluster: it connects to no address of that cluster, of its own machine or of its link, unless the
administrator declared the registry. The address is checked where the socket is made, after every resolution and for
every redirect, so a name that means something else a moment later wins nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class ForbiddenAddress(OSError):
    """A name led to an address that must not be connected to."""


def _no_networks() -> Iterable[str]:
    return ()


@dataclass(frozen=True)
class AddressPolicy:
    """What is let through. Registries are `host` or `host:port`, as image references write them."""

    guarded: bool = False
    # Registries that may be anywhere, also inside.
    declared: frozenset[str] = frozenset()
    # Registries without TLS; they are declared, too.
    insecure: frozenset[str] = frozenset()
    # The management cluster's own networks at this moment.
    inside: Callable[[], Iterable[str]] = _no_networks

    def is_insecure(self, registry: str) -> bool:
        return registry in self.insecure

    def watches(self, registry: str) -> bool:
        """Whether the addresses of this registry are checked."""
        if not self.guarded:
            return False
        host = registry.rpartition(":")[0] if _has_port(registry) else registry
        return not {registry, host} & (self.declared | self.insecure)

    def check(self, address: str) -> None:
        """Raise for an address that a user's word must not lead to."""
        found = _plain(ipaddress.ip_address(address.partition("%")[0]))
        if found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast:
            raise ForbiddenAddress(f"its address {address} is one of the machine itself or of its link")
        for text in self.inside():
            if found in ipaddress.ip_network(text, strict=False):
                raise ForbiddenAddress(f"its address {address} belongs to the management cluster ({text})")

    def socket(self, addr_info: tuple[Any, ...]) -> socket.socket:
        """The maker of sockets for connections that are checked."""
        family, kind, proto, _, sockaddr = addr_info
        self.check(str(sockaddr[0]))
        return socket.socket(family, kind, proto)


OPEN = AddressPolicy()


def _has_port(registry: str) -> bool:
    return registry.rpartition(":")[2].isdigit() and not registry.endswith("]")


def _plain(address: Address) -> Address:
    """An IPv4 address that hides in an IPv6 one is meant as what it is."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in ipaddress.ip_network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return inner or address
    return address
