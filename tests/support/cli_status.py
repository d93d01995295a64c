"""The statuses an operator would write, for tests that run without one."""

from __future__ import annotations

import base64
from typing import Any

from tests.support.cli_runner import IMAGE

from hcp.kube import Client
from hcp.kube.resources import HOSTEDCLUSTERS, NODEPOOLS

KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "https://{0}:6443"}}}}]
users: [{{name: u, user: {{token: {0}}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


async def make_ready(client: Client, namespace: str, name: str, *, image: str = IMAGE, nodes: int = 2) -> None:
    """Writes the status an operator would write for a cluster that is up."""
    now = "2026-01-01T00:00:00Z"
    kinds = ("ValidReleaseImage", "InfrastructureReady", "EtcdAvailable", "KubeAPIServerAvailable", "Available")
    conditions = [condition(kind, "True", "AsExpected") for kind in kinds]
    version = image.rpartition(":")[2]
    entry = {
        "state": "Completed",
        "version": version,
        "image": image,
        "startedTime": now,
        "completionTime": now,
        "verified": False,
    }
    status = {
        "conditions": conditions,
        "controlPlaneEndpoint": {"host": f"{name}.example.com", "port": 6443},
        "kubeconfig": {"name": f"{name}-admin-kubeconfig"},
        "version": {
            "desired": {"image": image, "version": version},
            "history": [entry],
            "observedGeneration": 1,
            "availableUpdates": None,
        },
    }
    await client.patch(HOSTEDCLUSTERS, name, namespace, {"status": status}, subresource="status")
    pool = {"status": {"replicas": nodes, "version": version, "conditions": [condition("Ready", "True", "AsExpected")]}}
    await client.patch(NODEPOOLS, name, namespace, pool, subresource="status")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-admin-kubeconfig", "namespace": namespace},
        "data": {"kubeconfig": base64.b64encode(KUBECONFIG.format(name).encode()).decode()},
    }
    await client.apply(secret)


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
