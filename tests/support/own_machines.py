"""Pools of platform None, and the nodes of machines that nobody but their owner knows."""

from __future__ import annotations

from typing import Any

from tests.support.node_pools import Object, node_pool

from hcp.api.names import LABEL_NODEPOOL
from hcp.kube import Client
from hcp.kube import resources as r

NONE = {"type": "None"}


def own_pool(namespace: str, name: str = "demo", **spec: Any) -> Object:
    """As the established command line makes it."""
    management = {"autoRepair": False, "upgradeType": "InPlace"}
    return node_pool(namespace, name, **{"platform": NONE, "management": management, "replicas": 0, **spec})


async def join(
    client: Client, name: str, *, pool: str = "demo", address: str = "192.0.2.7", ready: str = "True"
) -> None:
    """What a kubelet with the pool's document says of its node."""
    labels = {LABEL_NODEPOOL: pool, "hypershift.openshift.io/release-version": "1.36.3"}
    await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
    await report(client, name, address=address, ready=ready)


async def report(client: Client, name: str, *, address: str = "192.0.2.7", ready: str = "True") -> None:
    status = {
        "conditions": [{"type": "Ready", "status": ready, "reason": "KubeletSaysSo", "message": "posted"}],
        "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
        "nodeInfo": {"kubeletVersion": "v1.36.3"},
    }
    await client.patch(r.NODES, name, None, {"status": status}, subresource="status")
