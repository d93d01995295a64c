"""A management cluster that has nothing but a registry which `hcp release push` filled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.e2e.elsewhere import registry_elsewhere, trust
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.registry import Registry


@dataclass
class Site:
    """The cluster, the registry, and what a person has in files."""

    cluster: Cluster
    registry: Registry
    ca: Path
    login: Path
    published: dict[str, Any]

    def images(self, namespace: str) -> set[str]:
        pods = self.cluster.get("pods", "-n", namespace)["items"]
        return {
            one["image"] for pod in pods for one in pod["spec"]["containers"] + pod["spec"].get("initContainers", [])
        }


@contextmanager
def site_with_published_images(name: str, profile: str, folder: Path) -> Iterator[Site]:
    """Push, start the cluster, and let its nodes use that registry; KubeVirt and CDI stay where they came from."""
    with registry_elsewhere(folder) as registry:
        ca, login = folder / "ca.pem", folder / "auth.json"
        ca.write_bytes(registry.ca_pem)
        login.write_text(json.dumps(registry.auths))
        access = ("--ca", str(ca), "--authfile", str(login), "-o", "json")
        published = json.loads(hcp("release", "push", f"docker://{registry.host}/team/hcp", *access).stdout)
        hcp("local", "up", "--name", name, "--profile", profile)
        try:
            cluster = Cluster(name, folder)
            trust(name, registry, folder, only=profile == "cluster")
            cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters"}})
            yield Site(cluster, registry, ca, login, published)
        finally:
            hcp("local", "down", "--name", name, "--purge")
