"""A first NetworkPolicy before the suite, so that no spec's patience goes into pulling and starting the firewall.

A hosted cluster without a policy runs nothing that enforces them, and specs look at packets seconds after they wrote
theirs. One that selects nothing is held for the whole run. Pure; runs nothing.
"""

from __future__ import annotations

from typing import Any

from hcp.guest import flannel, network_policy

NAMESPACE = "conformance-policies"
# Nodes load no module for SCTP, and pods may not.
SKIPPED = r"\[Feature:SCTPConnectivity\]"


def wanted(focus: str) -> bool:
    """Whether an expression asks for specs of policies, which have both words in their names."""
    return any(word in focus.lower() for word in ("networkpolicy", "netpol"))


def manifests() -> list[dict[str, Any]]:
    nothing = {"podSelector": {"matchLabels": {"conformance": "selects-nothing"}}, "policyTypes": ["Ingress"]}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "first", "namespace": NAMESPACE},
            "spec": nothing,
        },
    ]


def own_network() -> list[str]:
    """Says something where the release's own network is; others enforce policies by themselves, or nobody does."""
    return ["get", "daemonset", flannel.NAME, "--namespace=kube-system", "--ignore-not-found", "--output=name"]


def waits() -> list[list[str]]:
    """Until it is enforced on every node."""
    what, where = f"daemonset/{network_policy.NAME}", "--namespace=kube-system"
    return [
        ["wait", "--for=create", what, where, "--timeout=5m"],
        ["rollout", "status", what, where, "--timeout=20m"],
    ]
