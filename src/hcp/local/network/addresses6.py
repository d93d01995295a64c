"""Which IPv6 addresses embedded cluster number i uses, where it has them: the same places as of IPv4, and names.

All are unique local addresses: fd, and then `hcp` in ASCII. The number is written in decimal digits, so that a person
finds the cluster in an address.
"""

from __future__ import annotations

from dataclasses import dataclass

# Whatever any embedded cluster of this machine has.
ALL = "fd68:6370::/32"
_FIRST_JOINED = 8
_FIRST_PODS = 0x100


@dataclass(frozen=True)
class Addresses6:
    """A /48 each: network 0 is the link to the machine, 1 has load balancers, 100 and up have pods, 200 Services."""

    number: int

    @property
    def _prefix(self) -> str:
        return f"fd68:6370:{self.number}"

    @property
    def host(self) -> str:
        return f"{self._prefix}::1"

    @property
    def node(self) -> str:
        return f"{self._prefix}::2"

    @property
    def registry(self) -> str:
        return f"{self._prefix}::3"

    @property
    def link_range(self) -> str:
        return f"{self._prefix}::/64"

    @property
    def load_balancers(self) -> str:
        return f"{self._prefix}:1::40/122"

    @property
    def router(self) -> str:
        return f"{self._prefix}:1::40"

    @property
    def announced(self) -> str:
        return f"{self._prefix}::80/121"

    @property
    def joined_nodes(self) -> str:
        return f"{self._prefix}::{_FIRST_JOINED}/125"

    def node_of(self, index: int) -> str:
        return self.node if index == 1 else f"{self._prefix}::{_FIRST_JOINED + index - 2:x}"

    def pods_of(self, index: int) -> str:
        return f"{self._prefix}:{_FIRST_PODS + index - 1:x}::/{self.node_prefix}"

    def gateway_of(self, index: int) -> str:
        """The node as its pods know it: on the link of each, for neither the node's own use nor anybody's."""
        return f"{self._prefix}:{_FIRST_PODS + index - 1:x}::1"

    @property
    def pods(self) -> str:
        return f"{self._prefix}:{_FIRST_PODS:x}::/56"

    @property
    def node_prefix(self) -> int:
        """Pods of a node have a whole network."""
        return 64

    @property
    def services(self) -> str:
        return f"{self._prefix}:200::/112"

    @property
    def kubernetes_service(self) -> str:
        return f"{self._prefix}:200::1"

    @property
    def dns(self) -> str:
        return f"{self._prefix}:200::a"
