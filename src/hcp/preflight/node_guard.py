"""An AdminNetworkPolicy that keeps virtual machines off what listens on nodes, for clusters that enforce such policies.

Our NetworkPolicies name addresses of nodes, where we may read them. This one selects nodes by what they are, needs no
address, and is the cluster owner's: no namespace can take it away. Selecting nodes is an experimental part of the API,
which OVN-Kubernetes has.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hcp.kube import Client, Resource
from hcp.kube.errors import Forbidden, NotFound
from hcp.preflight.result import Finding, ok, unknown, warn

POLICIES = Resource("policy.networking.k8s.io", "v1alpha1", "adminnetworkpolicies", "AdminNetworkPolicy", False)
NAME = "virtual-machines-off-nodes"
CHECK = "Machines kept off nodes"
# Lower numbers are judged first; owners keep those below for what must come before.
_PRIORITY = 40
# ssh, etcd, API server, metrics, container runtime, etcd's metrics, kubelet and its neighbours, machine configuration.
PORTS: tuple[tuple[int, int], ...] = (
    (22, 22),
    (2379, 2381),
    (6443, 6443),
    (9100, 9107),
    (9537, 9537),
    (9978, 9980),
    (10248, 10259),
    (22623, 22624),
)


def manifest(without: Collection[int] = ()) -> dict[str, Any]:
    """The policy; `without`: ports at which hosted clusters are published on nodes."""
    return {
        "apiVersion": f"{POLICIES.group}/{POLICIES.version}",
        "kind": POLICIES.kind,
        "metadata": {"name": NAME},
        "spec": {
            "priority": _PRIORITY,
            "subject": {
                "pods": {"namespaceSelector": {}, "podSelector": {"matchLabels": {"kubevirt.io": "virt-launcher"}}}
            },
            "egress": [
                {
                    "name": "services-of-nodes",
                    "action": "Deny",
                    "to": [{"nodes": {}}],
                    "ports": [_port(first, last) for first, last in _spared(without)],
                }
            ],
        },
    }


async def check(client: Client) -> list[Finding]:
    """Whether it is there; nothing where the cluster knows no such policies."""
    if not await client.has(POLICIES):
        return []
    try:
        await client.get(POLICIES, NAME)
    except NotFound:
        hint = "as the cluster's owner: hcp rbac node-guard | kubectl apply -f -"
        return [warn(CHECK, f"there is no AdminNetworkPolicy {NAME}: NetworkPolicies alone do it", hint)]
    except Forbidden as error:
        return [unknown(CHECK, "not allowed to look at AdminNetworkPolicies", error.hint or "")]
    return [ok(CHECK, f"AdminNetworkPolicy {NAME}")]


def _spared(without: Collection[int]) -> list[tuple[int, int]]:
    found = []
    for first, last in PORTS:
        start = first
        for port in sorted({*without} & {*range(first, last + 1)}):
            found += [(start, port - 1)] if start < port else []
            start = port + 1
        found += [(start, last)] if start <= last else []
    return found


def _port(first: int, last: int) -> dict[str, Any]:
    if first == last:
        return {"portNumber": {"protocol": "TCP", "port": first}}
    return {"portRange": {"protocol": "TCP", "start": first, "end": last}}
