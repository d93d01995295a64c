"""Nodes of a hosted cluster, on a management cluster that has nothing but a published registry with a password."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.e2e.control_planes import guest_of
from tests.support.e2e.hosted_tools import SMALL_VM, Guest
from tests.support.e2e.local_tools import hcp
from tests.support.e2e.published_site import site_with_published_images
from tests.support.eventually import eventually_sync

NAME = "publishvm"

pytestmark = pytest.mark.timeout(4200)


# Nobody has this registry; the site has its images under other names.
SOURCE = "images.source.invalid/upstream"


def test_a_node_boots_and_runs_images_from_there(tmp_path: Path) -> None:
    with site_with_published_images(NAME, "kubevirt", tmp_path) as site:
        access = ("--kubeconfig", str(site.cluster.kubeconfig))
        here = f"{site.registry.host}/team/hcp"
        mirrors = tmp_path / "mirrors.yaml"
        mirrors.write_text(yaml.safe_dump([{"source": SOURCE, "mirrors": [here]}]))
        hcp(*site.published["install"][1:], *access, "--wait-until-available")
        hcp(
            *("create", "cluster", "kubevirt", "--name", "one", *access, *SMALL_VM, "--node-pool-replicas", "1"),
            *("--control-plane-availability-policy", "SingleReplica", "--pull-secret", str(site.login)),
            *("--additional-trust-bundle", str(site.ca), "--image-content-sources", str(mirrors)),
            *("--wait", "--timeout", "30m"),
        )
        guest = guest_of(site.cluster, tmp_path, "one")
        assert len(guest.ready_nodes()) == 1
        pods = guest.get("pods", "-A")["items"]
        images = {one["image"] for pod in pods for one in pod["spec"]["containers"]}
        assert {image.rpartition("/")[0] for image in images} == {here}
        (etcd,) = [image for image in site.images("clusters-one") if "/etcd@" in image]
        guest.kubectl("apply", "-f", "-", stdin=json.dumps(_pod("renamed", etcd.replace(here, SOURCE))))
        ended = eventually_sync(lambda: _ended(guest, "renamed"), "the pod of an image by another name", 900)
        assert ended == "Succeeded"


def _pod(name: str, image: str) -> dict[str, Any]:
    container = {"name": "it", "image": image, "command": ["etcd", "--version"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def _ended(guest: Guest, name: str) -> str:
    phase = guest.get("pod", name, "-n", "default")["status"].get("phase")
    return str(phase) if phase in ("Succeeded", "Failed") else ""
