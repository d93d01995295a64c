"""All that decides how a control plane looks, gathered once; the builders read nothing else.

Equal params render equal objects, in every process and at any time: that is what keeps an operator restart from
rolling pods.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hcp.api import defaults, names
from hcp.api.addresses import in_url, is_address
from hcp.errors import HcpError

AGENT_PORT = 8091
# In the release; without it nobody logs in by a password.
LOGIN_IMAGE = "dex"
Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a service of the control plane is reached from outside."""

    host: str
    port: int

    @property
    def url(self) -> str:
        return f"https://{in_url(self.host)}:{self.port}"

    @property
    def is_ip(self) -> bool:
        return is_address(self.host)


@dataclass(frozen=True, slots=True)
class Publishing:
    """How one service is published: the strategy of the HostedCluster, with names filled in."""

    service: str
    type: str
    hostname: str = ""
    address: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True)
class NamedCert:
    """A certificate for host names besides those of the cluster's own; without names, for those in it."""

    secret: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Params:
    """One hosted control plane."""

    name: str
    cluster_namespace: str
    namespace: str
    infra_id: str
    cluster_id: str
    # Of the HostedCluster object.
    cluster_uid: str = ""
    uid: int | None = None
    # Worker VMs live in the hosted namespace too (no external infra cluster).
    vms_inside: bool = True
    highly_available: bool = False
    images: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    release_image: str = ""
    cluster_networks: tuple[str, ...] = (defaults.CLUSTER_CIDR,)
    # Of each pod network, what a node gets.
    host_prefixes: tuple[int, ...] = (23,)
    service_networks: tuple[str, ...] = (defaults.SERVICE_CIDR,)
    advertise_address: str = defaults.ADVERTISE_V4
    api_port: int = defaults.API_PORT
    allowed_cidrs: tuple[str, ...] = ()
    node_port_range: str = "{}-{}".format(*defaults.NODE_PORTS)
    issuer_url: str = "https://kubernetes.default.svc"
    allocate_node_cidrs: bool = True
    publishing: Mapping[str, Publishing] = field(default_factory=dict)
    api_endpoint: Endpoint | None = None
    # All addresses of a load balancer that is known by one of them.
    api_addresses: tuple[str, ...] = ()
    konnectivity_endpoint: Endpoint | None = None
    api_dns_name: str = ""
    etcd_size: str = defaults.ETCD_SIZE
    etcd_storage_class: str = ""
    # Where the snapshot lies that a new etcd starts from.
    etcd_snapshot_url: str = ""
    # How many members etcd has on its way from one number to another; 0: as many as it shall have.
    etcd_members: int = 0
    # Its pods below this number keep the template that they have.
    etcd_partition: int = 0
    # Of an etcd that somebody else runs; empty: the control plane has its own.
    foreign_etcd: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    owner: Mapping[str, Any] | None = None
    api_config: Mapping[str, Any] = field(default_factory=dict)
    # `configuration.scheduler`.
    scheduler_config: Mapping[str, Any] = field(default_factory=dict)
    # Certificates that the API server shows for further names: those whose Secrets could be used.
    named_certs: tuple[NamedCert, ...] = ()
    # Trusted for the name of one's own, besides the cluster's authority.
    api_dns_trust: bytes = b""
    # Further authorities whose client certificates log in.
    client_ca: bytes = b""
    # Whether audit events are sent somewhere; the kubeconfig for it is copied beforehand.
    audit_webhook: bool = False
    # Where the operator runs: from there it looks after etcd.
    operator_namespace: str = names.OPERATOR_NAMESPACE
    # Pods, services and machines of the management cluster: not for a tenant's control plane.
    hidden_networks: tuple[str, ...] = ()
    # Where the management API answers, for components that need it.
    management_api: tuple[tuple[str, int], ...] = ()
    # Of the pods and Services of the management cluster.
    management_networks: tuple[str, ...] = ()
    # Whether Services of the management cluster can prefer endpoints on the caller's node.
    same_node_first: bool = False
    # Whether a node pool asks for as many nodes as the load needs.
    autoscaled: bool = False
    # Whether users come with tokens of an issuer of their own.
    own_issuer: bool = False
    # `configuration.proxy`.
    proxy: Mapping[str, Any] = field(default_factory=dict)
    # Nothing of it runs; everything else stays as it is, for the moment it wakes.
    asleep: bool = False
    # Since when, where a request to its API shall wake it.
    sleeps_since: str = ""

    @property
    def replicas(self) -> int:
        """Of etcd and kube-apiserver."""
        return 3 if self.highly_available else 1

    @property
    def members(self) -> int:
        """Of etcd, at this moment."""
        return self.etcd_members or self.replicas

    @property
    def for_etcd(self) -> Params:
        """As etcd is made: as that of many members for as long as it has some, or shall have them."""
        return replace(self, highly_available=self.highly_available or self.members > 1)

    @property
    def controllers(self) -> int:
        """Of everything else."""
        return 2 if self.highly_available else 1

    @property
    def authentication_file(self) -> bool:
        """Whether a file tells the API server whose tokens to believe; it is read again when it changes."""
        return self.own_issuer or LOGIN_IMAGE in self.images

    @property
    def key(self) -> str:
        return f"{self.cluster_namespace}/{self.name}"

    def image(self, component: str) -> str:
        try:
            return self.images[component]
        except KeyError:
            raise HcpError(
                f"The release {self.release_image} has no image for {component}",
                hint="Use a release that carries it.",
            ) from None

    def published(self, service: str) -> Publishing:
        return self.publishing.get(service, Publishing(service, "Route"))

    def first_service_ips(self) -> tuple[str, ...]:
        """The address the `kubernetes` Service gets in each service network."""
        return tuple(str(ipaddress.ip_network(n)[1]) for n in self.service_networks)

    def dns_ips(self) -> tuple[str, ...]:
        """The addresses of the guest's DNS Service: the tenth of each service network."""
        return tuple(str(ipaddress.ip_network(n)[10]) for n in self.service_networks)

    @property
    def has_six(self) -> bool:
        """Whether the hosted cluster has IPv6, alone or beside IPv4."""
        return any(":" in n for n in (*self.cluster_networks, *self.service_networks))

    @property
    def everywhere(self) -> str:
        """Where components listen: on IPv6 too if anybody may call by it."""
        return "::" if self.has_six or any(":" in n for n in self.management_networks) else "0.0.0.0"

    @property
    def inside_six_only(self) -> bool:
        """Whether pods of the management cluster have no IPv4."""
        return bool(self.management_networks) and all(":" in n for n in self.management_networks)
