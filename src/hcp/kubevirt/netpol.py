"""The NetworkPolicy that keeps worker VMs away from the management cluster's own networks.

Enforcement sees addresses after DNAT: a VM that calls a LoadBalancer or Service address is judged by the pod behind
it. So everything a VM legitimately reaches inside the management cluster needs a peer of its own.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hcp.api.addresses import is_address
from hcp.api.names import GROUP, LABEL_INFRA_ID, OPERATOR_NAMESPACE

NAME = "virt-launcher"
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_COMPONENT = f"{GROUP}/control-plane-component"


@dataclass(frozen=True)
class PolicyInput:
    """What the policy depends on; empty networks mean that they are not known."""

    namespace: str
    infra_id: str
    networks: Sequence[str]
    node_port_addresses: Sequence[str] = ()
    # Where the cluster's own API server answers: outside the pod and service networks, and still not for guests.
    api_endpoints: Sequence[tuple[str, int]] = ()
    # The VMs run beside their control plane and reach it as pods.
    central: bool = True


def virt_launcher_policy(given: PolicyInput) -> dict[str, Any]:
    """The policy for all VMs of one hosted cluster."""
    own = {"matchLabels": {LABEL_INFRA_ID: given.infra_id, "kubevirt.io": "virt-launcher"}}
    hidden = [*given.networks, *(_cidr(address) for address, _ in given.api_endpoints)]
    egress: list[dict[str, Any]] = [{"to": [*_outside(hidden), *_peers(own, given.central)]}]
    egress += [_beside(address, port) for address, port in sorted(set(given.api_endpoints))]
    for address in sorted({text for text in given.node_port_addresses if is_address(text)}):
        egress.append({"to": [{"ipBlock": {"cidr": _cidr(address)}}]})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": NAME, "namespace": given.namespace, "labels": {LABEL_INFRA_ID: given.infra_id}},
        "spec": {
            "podSelector": own,
            "policyTypes": ["Egress", "Ingress"],
            "ingress": [{"ports": [{"protocol": "TCP"}, {"protocol": "UDP"}, {"protocol": "SCTP"}]}],
            "egress": egress,
        },
    }


def _cidr(address: str) -> str:
    return f"{address}/{128 if ':' in address else 32}"


def _beside(address: str, port: int) -> dict[str, Any]:
    """Everything else on the machine of an API server: node ports, a registry."""
    ports: list[dict[str, Any]] = [{"protocol": "UDP", "port": 1, "endPort": 65535}]
    if port > 1:
        ports.append({"protocol": "TCP", "port": 1, "endPort": port - 1})
    if port < 65535:
        ports.append({"protocol": "TCP", "port": port + 1, "endPort": 65535})
    return {"to": [{"ipBlock": {"cidr": _cidr(address)}}], "ports": ports}


def _outside(networks: Sequence[str]) -> list[dict[str, Any]]:
    """Everything except the management cluster's pods and services."""
    parsed = [ipaddress.ip_network(cidr, strict=False) for cidr in networks]
    four = sorted({str(network) for network in parsed if network.version == 4})
    six = sorted({str(network) for network in parsed if network.version == 6})
    peers = []
    for whole, inside in (("0.0.0.0/0", four), ("::/0", six)):
        block: dict[str, Any] = {"cidr": whole}
        if inside:
            block["except"] = inside
        peers.append({"ipBlock": block})
    return peers


def _peers(own: dict[str, Any], central: bool) -> list[dict[str, Any]]:
    peers: list[dict[str, Any]] = [
        {"podSelector": own},
        _pods({"dns.operator.openshift.io/daemonset-dns": "default"}, {_NAMESPACE_NAME: "openshift-dns"}),
        _pods({"k8s-app": "kube-dns"}, {_NAMESPACE_NAME: "kube-system"}),
        _pods(
            {"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"},
            {"name": "openshift-ingress"},
        ),
    ]
    if central:
        peers += [
            _pods({_COMPONENT: "kube-apiserver"}),
            _pods({_COMPONENT: "oauth-openshift"}),
            _pods({"app": "ignition-server-proxy"}),
            _pods({"app": "ignition-server"}, {_NAMESPACE_NAME: OPERATOR_NAMESPACE}),
        ]
    return peers


def _pods(labels: dict[str, str], namespace: dict[str, str] | None = None) -> dict[str, Any]:
    peer: dict[str, Any] = {"podSelector": {"matchLabels": labels}}
    if namespace:
        peer["namespaceSelector"] = {"matchLabels": namespace}
    return peer
