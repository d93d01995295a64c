"""Peers of egress rules: the world without a cluster's own networks, DNS, routers, single addresses with a port.

Enforcement sees addresses after DNAT: what is called by a Service or LoadBalancer address is judged by the pod behind
it. So everything that is legitimately reached inside the management cluster needs a peer of its own.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Any

NAMESPACE_NAME = "kubernetes.io/metadata.name"
# No router carries them, and clouds answer there with credentials of the machine.
LINK_LOCAL = ("169.254.0.0/16", "fe80::/10")
# Where NodeLocal DNSCache answers pods, on many clusters.
_NODE_LOCAL_DNS = "169.254.20.10"
# DNS servers listen on 53, on OpenShift on 5353, without privileges often on 1053; seen after DNAT.
_DNS_PORTS = (53, 1053, 5353)


def host_cidr(address: str) -> str:
    return f"{address}/{128 if ':' in address else 32}"


def collapsed(networks: Iterable[str]) -> list[str]:
    """The same addresses with the fewest networks, so that a policy stays short on a cluster with many nodes."""
    parsed = [ipaddress.ip_network(text, strict=False) for text in networks]
    four = ipaddress.collapse_addresses(n for n in parsed if isinstance(n, ipaddress.IPv4Network))
    six = ipaddress.collapse_addresses(n for n in parsed if isinstance(n, ipaddress.IPv6Network))
    return [*map(str, four), *map(str, six)]


def outside(hidden: Iterable[str]) -> list[dict[str, Any]]:
    """Everything except the hidden networks and what is link-local."""
    networks = collapsed([*hidden, *LINK_LOCAL])
    return [
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": [text for text in networks if ":" not in text]}},
        {"ipBlock": {"cidr": "::/0", "except": [text for text in networks if ":" in text]}},
    ]


def to_address(address: str, *ports: int) -> dict[str, Any]:
    """A rule for TCP ports of one address."""
    return {
        "to": [{"ipBlock": {"cidr": host_cidr(address)}}],
        "ports": [{"protocol": "TCP", "port": port} for port in ports],
    }


def dns() -> list[dict[str, Any]]:
    """Rules for asking the cluster's DNS servers, and nothing else of them."""

    def ports(*numbers: int) -> list[dict[str, Any]]:
        return [{"protocol": protocol, "port": number} for protocol in ("UDP", "TCP") for number in numbers]

    servers = [
        pods({"dns.operator.openshift.io/daemonset-dns": "default"}, {NAMESPACE_NAME: "openshift-dns"}),
        pods({"k8s-app": "kube-dns"}, {NAMESPACE_NAME: "kube-system"}),
    ]
    return [
        {"to": servers, "ports": ports(*_DNS_PORTS)},
        {"to": [{"ipBlock": {"cidr": host_cidr(_NODE_LOCAL_DNS)}}], "ports": ports(53)},
    ]


def routers() -> list[dict[str, Any]]:
    """The pods that answer for Routes."""
    return [
        pods(
            {"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"},
            {"name": "openshift-ingress"},
        )
    ]


def pods(labels: dict[str, str], namespace: dict[str, str] | None = None) -> dict[str, Any]:
    peer: dict[str, Any] = {"podSelector": {"matchLabels": labels}}
    if namespace:
        peer["namespaceSelector"] = {"matchLabels": namespace}
    return peer


def hidden(networks: Sequence[str], nodes: Sequence[str], api: Sequence[tuple[str, int]]) -> list[str]:
    """What of a cluster nobody outside its own workloads has to reach: pods, services, nodes, its API server."""
    return collapsed([*networks, *map(host_cidr, nodes), *(host_cidr(address) for address, _ in api)])
