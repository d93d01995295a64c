"""Volumes inside a hosted cluster, on two virtual machines. Each test builds on the last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.e2e.hosted_tools import SMALL_VM, Guest
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync

NAME, CLUSTER = "volumes", "disks"
HOSTED = f"clusters-{CLUSTER}"
RELEASE = "release-1.36-storage"
CLASS, SNAPSHOT_CLASS = "kubevirt-csi-infra-default", "kubevirt-csi-snapshot"

pytestmark = pytest.mark.timeout(5400)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("storage")
    hcp("local", "up", "--name", NAME, "--profile", "kubevirt", "--with", "storage")
    try:
        made = Cluster(NAME, folder)
        access = ("--kubeconfig", str(made.kubeconfig))
        lines = hcp("local", "push", "--name", NAME, RELEASE).stdout.splitlines()
        image = next(line.split()[1] for line in lines if line.startswith(f"{RELEASE} "))
        hcp("install", *access, "--wait-until-available")
        secret = folder / "pull-secret.json"
        secret.write_text('{"auths": {}}')
        hcp(
            *("create", "cluster", "kubevirt", "--name", CLUSTER, "--pull-secret", str(secret), *access, *SMALL_VM),
            *("--node-pool-replicas", "2", "--control-plane-availability-policy", "SingleReplica"),
            *("--release-image", image, "--wait", "--timeout", "30m"),
        )
        yield made
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    return Guest.of(management, CLUSTER)


def claim(guest: Guest, name: str, size: str = "256Mi", **more: Any) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **more}
    metadata = {"name": name, "namespace": "default"}
    _apply(guest, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})


def pod(guest: Guest, name: str, volume: str, line: str, node: str = "") -> None:
    """A pod that runs a line of shell with the claim at /data, and then stays."""
    container = {
        "name": "one",
        "image": guest.image(),
        "command": ["sh", "-c", f"{line} && sync && sleep 100000"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "readinessProbe": {"exec": {"command": ["test", "-e", "/data"]}},
    }
    spec: dict[str, Any] = {
        "containers": [container],
        "terminationGracePeriodSeconds": 0,
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": volume}}],
    }
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    _apply(guest, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec})
    eventually_sync(lambda: _phase(guest, name) == "Running", f"pod {name} runs", 900)


def _apply(guest: Guest, obj: dict[str, Any]) -> None:
    guest.kubectl("apply", "-f", "-", stdin=json.dumps(obj))


def _phase(guest: Guest, name: str) -> str:
    found: str = guest.get("pod", name)["status"]["phase"]
    return found


def read(guest: Guest, name: str, path: str) -> str:
    return guest.kubectl("exec", name, "--", "cat", path).strip()


def end(guest: Guest, name: str) -> None:
    guest.kubectl("delete", "pod", name, "--wait=true", seconds=600)


def plugged(management: Cluster) -> dict[str, list[str]]:
    """Hotplugged volumes by machine."""
    found = management.get("vmi", "-n", HOSTED)["items"]
    return {
        vm["metadata"]["name"]: [v["name"] for v in vm["status"].get("volumeStatus") or () if v.get("hotplugVolume")]
        for vm in found
    }


def test_the_default_class_is_there_and_the_condition_says_that_storage_works(
    management: Cluster, guest: Guest
) -> None:
    def works() -> bool:
        conditions = management.get("hostedcluster", CLUSTER, "-n", "clusters")["status"]["conditions"]
        found = next(one for one in conditions if one["type"] == "StorageAvailable")
        return bool(found["status"] == "True") and CLASS in found["message"]

    eventually_sync(works, "storage works", 900)
    made = guest.get("storageclass", CLASS)
    assert made["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true"
    assert "storage" in hcp("status", CLUSTER, "--kubeconfig", str(management.kubeconfig)).stdout


def test_a_claim_becomes_a_disk_that_a_pod_writes_to(management: Cluster, guest: Guest) -> None:
    first, _ = sorted(guest.ready_nodes())
    claim(guest, "data")
    pod(guest, "writer", "data", "echo the-same-bytes > /data/file", first)
    assert read(guest, "writer", "/data/file") == "the-same-bytes"
    held = plugged(management)
    assert len(held[first]) == 1 and held[first][0].startswith("pvc-")


def test_the_volume_follows_its_pod_to_the_other_node(management: Cluster, guest: Guest) -> None:
    first, second = sorted(guest.ready_nodes())
    [volume] = plugged(management)[first]
    end(guest, "writer")
    pod(guest, "reader", "data", "true", second)
    assert read(guest, "reader", "/data/file") == "the-same-bytes"
    eventually_sync(lambda: plugged(management) == {first: [], second: [volume]}, "on one machine only", 300)


def test_a_claim_grows_where_its_class_can(management: Cluster, guest: Guest) -> None:
    if not guest.get("storageclass", CLASS)["allowVolumeExpansion"]:
        with pytest.raises(AssertionError, match="resize"):
            _grow(guest)
        return
    before = int(guest.kubectl("exec", "reader", "--", "sh", "-c", "df -k /data | tail -1 | awk '{print $2}'"))
    _grow(guest)

    def grown() -> bool:
        now = int(guest.kubectl("exec", "reader", "--", "sh", "-c", "df -k /data | tail -1 | awk '{print $2}'"))
        return now > 1.8 * before

    eventually_sync(grown, "the pod sees a larger file system", 600)
    assert read(guest, "reader", "/data/file") == "the-same-bytes"


def _grow(guest: Guest) -> None:
    body = {"spec": {"resources": {"requests": {"storage": "512Mi"}}}}
    guest.kubectl("patch", "pvc", "data", "--type=merge", "-p", json.dumps(body))


def test_a_snapshot_comes_back_as_a_claim(management: Cluster, guest: Guest) -> None:
    assert "NoStorage" not in _snapshot_classes(guest)
    _apply(
        guest,
        {
            "apiVersion": "snapshot.storage.k8s.io/v1",
            "kind": "VolumeSnapshot",
            "metadata": {"name": "cut", "namespace": "default"},
            "spec": {"volumeSnapshotClassName": SNAPSHOT_CLASS, "source": {"persistentVolumeClaimName": "data"}},
        },
    )
    eventually_sync(
        lambda: guest.get("volumesnapshot", "cut").get("status", {}).get("readyToUse") is True, "the snapshot", 600
    )
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "cut"}
    claim(guest, "restored", guest.get("pvc", "data")["status"]["capacity"]["storage"], dataSource=source)
    pod(guest, "restorer", "restored", "true")
    assert read(guest, "restorer", "/data/file") == "the-same-bytes"
    end(guest, "restorer")
    guest.kubectl("delete", "pvc", "restored")
    guest.kubectl("delete", "volumesnapshot", "cut")


def _snapshot_classes(guest: Guest) -> str:
    try:
        return guest.kubectl("get", "volumesnapshotclass", "-o", "name") or "NoStorage"
    except AssertionError:
        return "NoStorage"


def test_what_is_deleted_inside_leaves_nothing_outside(management: Cluster, guest: Guest) -> None:
    end(guest, "reader")
    guest.kubectl("delete", "pvc", "data", "--wait=true", seconds=300)
    mark = "hypershift.openshift.io/csi"
    eventually_sync(
        lambda: management.get("datavolumes,pvc", "-n", HOSTED, "-l", mark)["items"] == [], "no volume is left", 600
    )
    eventually_sync(lambda: all(not one for one in plugged(management).values()), "no disk is plugged in", 300)
