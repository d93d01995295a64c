"""Hosted control planes without machines on an embedded cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from tests.support.e2e.hosted_tools import Guest
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync

NS = "clusters"
RELEASE = "registry.hcp.test:5000/hcp/release:1.36.3"


def create(management: Cluster, folder: Path, name: str, *more: str, publish: dict[str, Any] | None = None) -> None:
    """What `hcp create` would make, without its checks for KubeVirt: no machines are wanted here."""
    secret = folder / "pull-secret.json"
    secret.write_text('{"auths": {}}')
    rendered = hcp(
        *("create", "cluster", "kubevirt", "--name", name, "--pull-secret", str(secret), "--render"),
        *("--render-sensitive", "--release-image", RELEASE, "--etcd-storage-size", "1Gi"),
        *("--control-plane-availability-policy", "SingleReplica", "--node-pool-replicas", "0"),
        *more,
    )
    objects = [o for o in yaml.safe_load_all(rendered.stdout) if o]
    for made in objects:
        if made["kind"] == "HostedCluster" and publish is not None:
            for service in made["spec"]["services"]:
                service["servicePublishingStrategy"] = publish
    management.apply(*objects)


def condition(management: Cluster, name: str, kind: str) -> dict[str, Any]:
    status = management.get("hostedcluster", name, "-n", NS).get("status") or {}
    found: dict[str, Any] = next((c for c in status.get("conditions") or [] if c["type"] == kind), {})
    return found


def available(management: Cluster, name: str) -> None:
    eventually_sync(lambda: condition(management, name, "Available").get("status") == "True", f"{name} Available", 1200)


def guest_of(management: Cluster, folder: Path, name: str) -> Guest:
    path = folder / f"{name}.kubeconfig"
    path.write_text(hcp("create", "kubeconfig", "--name", name, "--kubeconfig", str(management.kubeconfig)).stdout)
    return Guest(management, path)
