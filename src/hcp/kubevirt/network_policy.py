"""The NetworkPolicy that keeps worker VMs away from the management cluster's own networks and machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hcp.api.names import LABEL_CATALOG, LABEL_CONTROL_PLANE_COMPONENT, LABEL_INFRA_ID, OPERATOR_NAMESPACE
from hcp.kubevirt import egress

NAME = "virt-launcher"


@dataclass(frozen=True)
class PolicyInput:
    """What the policy depends on."""

    namespace: str
    infra_id: str
    # Pods, services, nodes and the API server of the cluster the VMs run in; empty when they are not known.
    hidden: Sequence[str]
    # Own services of the hosted cluster that are published on addresses of nodes: those ports, and no others.
    published: Sequence[tuple[str, int]] = ()
    # The VMs run beside their control plane and reach it as pods.
    central: bool = True


def virt_launcher_policy(given: PolicyInput) -> dict[str, Any]:
    """The policy for all VMs of one hosted cluster."""
    own = {"matchLabels": {LABEL_INFRA_ID: given.infra_id, "kubevirt.io": "virt-launcher"}}
    rules: list[dict[str, Any]] = [
        {"to": [*egress.outside(given.hidden), *_peers(own, given.central)]},
        *egress.dns(),
        *(egress.to_address(address, port) for address, port in sorted(set(given.published))),
    ]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": NAME, "namespace": given.namespace, "labels": {LABEL_INFRA_ID: given.infra_id}},
        "spec": {
            "podSelector": own,
            "policyTypes": ["Egress", "Ingress"],
            "ingress": [{"ports": [{"protocol": "TCP"}, {"protocol": "UDP"}, {"protocol": "SCTP"}]}],
            "egress": rules,
        },
    }


def _peers(own: dict[str, Any], central: bool) -> list[dict[str, Any]]:
    peers: list[dict[str, Any]] = [{"podSelector": own}, *egress.routers()]
    if central:
        peers += [
            egress.pods({LABEL_CONTROL_PLANE_COMPONENT: "kube-apiserver"}),
            egress.pods({LABEL_CONTROL_PLANE_COMPONENT: "oauth-openshift"}),
            egress.pods({"app": "ignition-server-proxy"}),
            egress.pods({"app": "ignition-server"}, {egress.NAMESPACE_NAME: OPERATOR_NAMESPACE}),
            {"podSelector": {"matchExpressions": [{"key": LABEL_CATALOG, "operator": "Exists"}]}},
        ]
    return peers
