"""A management cluster that reaches nothing but a registry which `hcp release push` filled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.support.e2e.elsewhere import cut_off, registry_elsewhere, trust
from tests.support.e2e.hosted_tools import Guest
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync
from tests.support.registry import Registry

# Nobody has this registry; the site has its images under other names.
SOURCE = "images.source.invalid/upstream"


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
def site_with_published_images(name: str, profile: str, folder: Path, *releases: str) -> Iterator[Site]:
    """Push, start the cluster, let its nodes use that registry, and cut every other way out of the cluster.

    KubeVirt and CDI stay where they came from: the registry inside the embedded cluster. `releases`: minors that are
    pushed, the newest when none are named.
    """
    with registry_elsewhere(folder) as registry:
        ca, login = folder / "ca.pem", folder / "auth.json"
        ca.write_bytes(registry.ca_pem)
        login.write_text(json.dumps(registry.auths))
        access = ("--ca", str(ca), "--authfile", str(login), "-o", "json")
        chosen = ("--release", ",".join(releases)) if releases else ()
        published = json.loads(hcp("release", "push", f"docker://{registry.host}/team/hcp", *chosen, *access).stdout)
        hcp("local", "up", "--name", name, "--profile", profile)
        try:
            cluster = Cluster(name, folder)
            trust(name, registry, folder, only=profile == "cluster")
            cut_off(name)
            cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters"}})
            yield Site(cluster, registry, ca, login, published)
        finally:
            hcp("local", "down", "--name", name, "--purge")


def renaming_mirror(folder: Path, place: str) -> Path:
    """Image content sources by which a place has the images of SOURCE."""
    file = folder / "mirrors.yaml"
    file.write_text(yaml.safe_dump([{"source": SOURCE, "mirrors": [place]}]))
    return file


def running(guest: Guest, namespace: str) -> bool:
    """Whether every pod there runs; there has to be one."""
    pods = guest.get("pods", "-n", namespace)["items"]
    return bool(pods) and all(pod["status"].get("phase") == "Running" for pod in pods)


def ended(guest: Guest | Cluster, image: str) -> str:
    """How a pod of etcd's image ended that only says its version."""
    container = {"name": "it", "image": image, "command": ["etcd", "--version"]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "renamed", "namespace": "default"},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    guest.kubectl("apply", "-f", "-", stdin=json.dumps(pod))

    def phase() -> str:
        found = guest.get("pod", "renamed", "-n", "default")["status"].get("phase")
        return str(found) if found in ("Succeeded", "Failed") else ""

    return str(eventually_sync(phase, f"the pod of {image} has ended", 900))
