"""A tenant writes into its volume until nothing fits any more: only its own volume is full.

All volumes of an embedded cluster share one file system of fixed size, and each is bounded by its claim. Needs root
and no virtual machine: a pod that writes is as bad as a database or a machine's disk that grows.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.e2e.local_tools import Cluster, hcp, namespace
from tests.support.eventually import eventually_sync

from hcp.linux import loop
from hcp.local.state.layout import Layout

NAME = "e2e-disk"
POOL = 2 << 30
CLAIM = 256 << 20
TENANTS = ("greedy", "frugal")
# Writes until the file system refuses, in a file that no other run used; tells how much it got, and why no more.
FILL = """
import json, os, sys
total, most, path = 0, int(sys.argv[1]), sys.argv[2]
piece = os.urandom(1 << 20)
why = ""
descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
try:
    while total < most:
        total += os.write(descriptor, piece)
        if total % (16 << 20) == 0:
            os.fsync(descriptor)
    os.fsync(descriptor)
except OSError as error:
    why = error.strerror
print(json.dumps({"total": total, "why": why}))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    hcp("local", "up", "--name", NAME, "--profile", "cluster", "--volumes", str(POOL))
    try:
        found = Cluster(NAME, tmp_path_factory.mktemp("kubeconfig"))
        for tenant in TENANTS:
            found.apply(namespace(tenant), claim(tenant, "data", CLAIM), writer(tenant, "writer", found.image()))
        for tenant in TENANTS:
            found.wait_pods(tenant, "writer", seconds=300)
        yield found
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


def claim(ns: str, name: str, size: int) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": str(size)}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": ns},
        "spec": spec,
    }


def writer(ns: str, name: str, image: str, volume: str = "data") -> dict[str, Any]:
    container = {
        "name": "writer",
        "image": image,
        "command": ["python3", "-c", "import signal; signal.pause()"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "securityContext": {"runAsUser": 1001},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": ns},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": volume}}],
        },
    }


def fill(cluster: Cluster, ns: str, file: str, most: int, pod: str = "writer") -> dict[str, Any]:
    words = ("exec", "-n", ns, pod, "--", "python3", "-c", FILL, str(most), f"/data/{file}")
    told: dict[str, Any] = json.loads(cluster.kubectl(*words, seconds=900))
    return told


def management_works(cluster: Cluster, mark: str) -> None:
    """Its database takes writes, and new pods get new volumes and use them."""
    cluster.apply(namespace(mark), claim(mark, "data", 32 << 20), writer(mark, "new", cluster.image()))
    cluster.wait_pods(mark, "new", seconds=300)
    assert fill(cluster, mark, "little", 1 << 20, "new") == {"total": 1 << 20, "why": ""}
    node = cluster.get("nodes")["items"][0]
    conditions = {item["type"]: item["status"] for item in node["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    assert conditions["DiskPressure"] == "False"


def test_a_full_volume_is_full_for_its_owner_alone(cluster: Cluster) -> None:
    told = fill(cluster, "greedy", "all", POOL)
    assert told["why"] in ("Disk quota exceeded", "No space left on device")
    assert CLAIM <= told["total"] <= CLAIM + (CLAIM >> 5) + (16 << 20)
    assert fill(cluster, "frugal", "some", CLAIM // 2) == {"total": CLAIM // 2, "why": ""}
    management_works(cluster, "while-one-is-full")


def test_an_owner_who_deletes_goes_on(cluster: Cluster) -> None:
    fill(cluster, "greedy", "all", POOL)
    cluster.kubectl("exec", "-n", "greedy", "writer", "--", "rm", "/data/all")
    # What was deleted is counted off when the file system next writes down what it knows.
    eventually_sync(lambda: not fill(cluster, "greedy", "again", CLAIM // 2)["why"], "room in the volume", 120)


def test_the_bound_is_still_there_after_a_restart(cluster: Cluster) -> None:
    hcp("local", "down", "--name", NAME)
    assert not loop.holders(Layout.of(NAME).volumes)
    hcp("local", "up", "--name", NAME)
    for tenant in TENANTS:
        cluster.wait_pods(tenant, "writer", seconds=300)
    assert cluster.kubectl("exec", "-n", "frugal", "writer", "--", "stat", "-c", "%s", "/data/some").strip() == str(
        CLAIM // 2
    )
    assert fill(cluster, "greedy", "more", POOL)["total"] <= CLAIM + (CLAIM >> 5) + (16 << 20)


def test_all_volumes_together_cannot_fill_the_machine(cluster: Cluster) -> None:
    """Claims may promise more than there is; then the volumes' file system is full, the machine's is not."""
    root = Layout.of(NAME).root
    before = shutil.disk_usage(root).free
    cluster.apply(claim("greedy", "huge", 64 * POOL), writer("greedy", "huge", cluster.image(), "huge"))
    cluster.wait_pods("greedy", "huge", seconds=300)
    told = fill(cluster, "greedy", "all", 4 * POOL, "huge")
    assert told["why"] in ("Disk quota exceeded", "No space left on device")
    assert told["total"] <= POOL
    assert Layout.of(NAME).volumes.stat().st_blocks * 512 <= POOL
    assert before - shutil.disk_usage(root).free <= POOL + (1 << 30), "what else the machine did meanwhile is small"
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "written", "namespace": "frugal"}})
    cluster.kubectl("delete", "pod", "huge", "-n", "greedy")
    cluster.kubectl("delete", "pvc", "huge", "-n", "greedy")
    eventually_sync(lambda: not volumes_of(cluster, "huge"), "the volume is removed", 120)
    management_works(cluster, "after-all-was-full")


def volumes_of(cluster: Cluster, name: str) -> list[str]:
    return [
        item["metadata"]["name"]
        for item in cluster.get("pv")["items"]
        if item["spec"].get("claimRef", {}).get("name") == name
    ]
