"""Which addresses embedded cluster number i uses.

Every range is a function of the number, so two clusters can never overlap and a name that carries an address
(the apps domain) can be answered by rule in any of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from hcp.local.network.addresses6 import Addresses6

IPV4, IPV6, DUAL = "ipv4", "ipv6", "dual"
FAMILIES = (IPV4, IPV6, DUAL)
MAX_CLUSTERS = 32
MAX_NODES = 8
# Pods of a node have a sixteenth of the cluster's range: more than a kubelet takes.
NODE_PREFIX = 20
_FIRST_JOINED = 8
REGISTRY_HOST = "registry.hcp.test"
REGISTRY_PORT = 5000
API_PORT = 6443
REGISTRY = f"{REGISTRY_HOST}:{REGISTRY_PORT}"
DNS_ZONE = "hcp.test"
ALL_NODES = "10.88.0.0/16"


@dataclass(frozen=True)
class Addresses:
    """The address plan of one cluster that has a node: its IPv4 addresses, and where to find the others.

    The link to the machine has IPv4 in every family, since that is the way out and to the machine's resolvers.
    """

    number: int
    family: str = IPV4

    @property
    def six(self) -> Addresses6 | None:
        """The IPv6 addresses, of a cluster that has them."""
        return None if self.family == IPV4 else Addresses6(self.number)

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """What Kubernetes uses, the family of nodes and Services first."""
        six = self.six
        if six is None:
            return (self,)
        return (six,) if self.family == IPV6 else (self, six)

    @property
    def primary(self) -> Stack:
        return self.stacks[0]

    @property
    def host(self) -> str:
        """Our end of the veth pair on the machine."""
        return f"10.88.{self.number}.1"

    @property
    def node(self) -> str:
        return f"10.88.{self.number}.2"

    @property
    def registry(self) -> str:
        """The registry has an address of its own: machines of tenants pull from it and reach nothing else there."""
        return f"10.88.{self.number}.3"

    @property
    def link_range(self) -> str:
        return f"10.88.{self.number}.0/24"

    @property
    def link(self) -> str:
        """Name of the machine's end of the veth pair."""
        return f"hcp{self.number}"

    @property
    def load_balancers(self) -> str:
        return f"10.88.{self.number}.64/26"

    @property
    def router(self) -> str:
        """The first LoadBalancer address, kept for the router."""
        return f"10.88.{self.number}.64"

    @property
    def announced(self) -> str:
        """Nobody leads here: on the link to the machine these addresses are answered by who announces them."""
        return f"10.88.{self.number}.128/25"

    @property
    def pool_range(self) -> str:
        """The same as pools of MetalLB name it, without the link's broadcast address."""
        return f"10.88.{self.number}.128-10.88.{self.number}.254"

    @property
    def joined_nodes(self) -> str:
        """Where the addresses of nodes after the first are."""
        return f"10.88.{self.number}.{_FIRST_JOINED}/29"

    def node_of(self, index: int) -> str:
        """The address of a node; the first has number 1."""
        return self.node if index == 1 else f"10.88.{self.number}.{_FIRST_JOINED + index - 2}"

    def link_of(self, index: int) -> str:
        return self.link if index == 1 else f"{self.link}n{index}"

    def pods_of(self, index: int) -> str:
        return f"10.{160 + self.number}.{16 * (index - 1)}.0/{NODE_PREFIX}"

    @property
    def pods(self) -> str:
        """Pods of all nodes."""
        return f"10.{160 + self.number}.0.0/16"

    @property
    def pod_gateway(self) -> str:
        return f"10.{160 + self.number}.0.1"

    @property
    def services(self) -> str:
        return f"10.{192 + self.number}.0.0/16"

    @property
    def kubernetes_service(self) -> str:
        return f"10.{192 + self.number}.0.1"

    @property
    def dns(self) -> str:
        return f"10.{192 + self.number}.0.10"

    @property
    def node_prefix(self) -> int:
        return NODE_PREFIX

    @property
    def apps_domain(self) -> str:
        name = self.primary.router.translate(str.maketrans(".:", "--"))
        return f"apps.{name}.{DNS_ZONE}"


Stack = Addresses | Addresses6
