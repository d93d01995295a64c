"""Volumes inside a hosted cluster, on two virtual machines. Each test builds on the last.

`KEEP=1` uses the clusters that are there and leaves them; `KILLS=10` ends that many machines under a volume.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.e2e.csi_bridge import bridged, folders
from tests.support.e2e.hosted_tools import KEEP, SMALL_VM, Guest, kept
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.e2e.volumes import apply, claim, cut, cut_status, end, pod, pod_spec, read
from tests.support.eventually import eventually_sync

from hcp import payload

NAME, CLUSTER = "volumes", "disks"
HOSTED = f"clusters-{CLUSTER}"
MAPPED = "clusters-mapped"
RELEASE = "release-1.36-storage"
CLASS, SNAPSHOT_CLASS = "kubevirt-csi-infra-default", "kubevirt-csi-snapshot"
KILLS = int(os.environ.get("KILLS") or 1)
# As a power cut would: nothing is asked, nothing is flushed.
_POWER_CUT = 'for p in /proc/[0-9]*; do case "$(cat $p/comm)" in qemu*) kill -9 ${p#/proc/};; esac; done'

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
        if not kept(made, CLUSTER):
            hcp(
                *("create", "cluster", "kubevirt", "--name", CLUSTER, "--pull-secret", str(secret), *access, *SMALL_VM),
                *("--node-pool-replicas", "2", "--control-plane-availability-policy", "SingleReplica"),
                *("--release-image", image, "--wait", "--timeout", "30m"),
            )
        yield made
    finally:
        if not KEEP:
            hcp("local", "down", "--name", NAME, "--purge")


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    return Guest.of(management, CLUSTER)


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
    told = _status(management)
    assert f"{CLASS} (default)" in told and SNAPSHOT_CLASS in told


def _status(management: Cluster) -> str:
    """The line about storage that a person sees."""
    lines = hcp("status", CLUSTER, "--kubeconfig", str(management.kubeconfig)).stdout.splitlines()
    return next((line for line in lines if line.split()[:1] == ["storage"]), "")


def test_a_claim_becomes_a_disk_that_a_pod_writes_to(management: Cluster, guest: Guest) -> None:
    first, _ = sorted(guest.ready_nodes())
    claim(guest, "data")
    pod(guest, "writer", "data", "echo the-same-bytes > /data/file", first)
    assert read(guest, "writer", "/data/file") == "the-same-bytes"
    held = plugged(management)
    assert len(held[first]) == 1 and held[first][0].startswith("pvc-")
    assert _hotplug_pods(management) != [], "what holds it outside"

    def told() -> bool:
        """A guest that is busy is not asked to its end, and the line is left out."""
        line = _status(management)
        return f"{CLASS} (default)" in line and line.endswith("; 1 volume")

    eventually_sync(told, "the volume is told of", 300)


def test_a_machine_with_a_volume_is_as_movable_as_without(management: Cluster, guest: Guest) -> None:
    """The class can do ReadWriteMany, so a disk of its is no reason to stay; root disks and the network may be one."""
    first, second = sorted(guest.ready_nodes())
    assert plugged(management)[first] != [] and plugged(management)[second] == []
    told = {name: _movable(management, name) for name in (first, second)}
    print(f"LiveMigratable: {told[first]}")
    assert told[first] == told[second]


def _movable(management: Cluster, machine: str) -> tuple[str, str]:
    conditions = management.get("vmi", machine, "-n", HOSTED)["status"]["conditions"]
    found = next(one for one in conditions if one["type"] == "LiveMigratable")
    return str(found["status"]), str(found.get("reason") or "")


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
    before = _kilobytes(guest, "reader")
    _grow(guest)
    eventually_sync(lambda: _kilobytes(guest, "reader") > 1.8 * before, "the pod sees a larger file system", 600)
    assert read(guest, "reader", "/data/file") == "the-same-bytes"


def _grow(guest: Guest) -> None:
    guest.kubectl("patch", "pvc", "data", "--type=merge", "-p", json.dumps(_storage("512Mi")))


def _storage(size: str) -> dict[str, Any]:
    return {"spec": {"resources": {"requests": {"storage": size}}}}


def _kilobytes(guest: Guest, name: str) -> int:
    """How large the file system is that a pod sees."""
    return int(guest.kubectl("exec", name, "--", "sh", "-c", "df -k /data | tail -1 | awk '{print $2}'"))


def test_a_snapshot_comes_back_as_a_claim(management: Cluster, guest: Guest) -> None:
    cut(guest, "cut", "data", SNAPSHOT_CLASS)
    eventually_sync(lambda: cut_status(guest, "cut").get("readyToUse") is True, "the snapshot", 600)
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "cut"}
    claim(guest, "restored", guest.get("pvc", "data")["status"]["capacity"]["storage"], dataSource=source)
    pod(guest, "restorer", "restored", "true")
    assert read(guest, "restorer", "/data/file") == "the-same-bytes"
    end(guest, "restorer")
    guest.kubectl("delete", "pvc", "restored")
    guest.kubectl("delete", "volumesnapshot", "cut")


def test_a_claim_can_be_copied_while_a_pod_has_it_and_the_copy_may_be_larger(guest: Guest) -> None:
    claim(guest, "copy", "768Mi", dataSource={"kind": "PersistentVolumeClaim", "name": "data"})
    pod(guest, "copier", "copy", "true")
    assert read(guest, "copier", "/data/file") == "the-same-bytes"
    assert _kilobytes(guest, "copier") > 600 * 1024
    end(guest, "copier")
    guest.kubectl("delete", "pvc", "copy")


def test_xfs_grows_and_a_copy_is_mounted_beside_it(guest: Guest) -> None:
    node = sorted(guest.ready_nodes())[0]
    usual = guest.get("storageclass", CLASS)
    parameters = {**(usual.get("parameters") or {}), "csi.storage.k8s.io/fstype": "xfs"}
    kept = {key: usual[key] for key in ("provisioner", "allowVolumeExpansion", "reclaimPolicy", "volumeBindingMode")}
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "xfs"}}
    apply(guest, {**kind, **kept, "parameters": parameters})
    claim(guest, "on-xfs", "320Mi", storageClassName="xfs")
    pod(guest, "on-xfs", "on-xfs", "true", node)
    write = "grep -q ' /data xfs ' /proc/mounts && echo the-same-bytes > /data/file && sync"
    guest.kubectl("exec", "on-xfs", "--", "sh", "-c", write)
    before = _kilobytes(guest, "on-xfs")
    source = {"kind": "PersistentVolumeClaim", "name": "on-xfs"}
    claim(guest, "xfs-copy", "320Mi", storageClassName="xfs", dataSource=source)
    pod(guest, "xfs-copy", "xfs-copy", "true", node)
    assert read(guest, "xfs-copy", "/data/file") == "the-same-bytes"
    guest.kubectl("patch", "pvc", "on-xfs", "--type=merge", "-p", json.dumps(_storage("640Mi")))
    eventually_sync(lambda: _kilobytes(guest, "on-xfs") > 1.8 * before, "the pod sees a larger file system", 600)
    for name in ("on-xfs", "xfs-copy"):
        end(guest, name)
        guest.kubectl("delete", "pvc", name)
    guest.kubectl("delete", "storageclass", "xfs")


def test_a_class_of_the_tenants_own_keeps_what_deleted_claims_leave(management: Cluster, guest: Guest) -> None:
    usual = guest.get("storageclass", CLASS)
    kept = {key: usual[key] for key in ("provisioner", "parameters", "volumeBindingMode")}
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "keeps"}}
    apply(guest, {**kind, **kept, "reclaimPolicy": "Retain"})
    claim(guest, "kept", "64Mi", storageClassName="keeps")
    pod(guest, "kept", "kept", "echo the-same-bytes > /data/file")
    end(guest, "kept")
    volume = guest.get("pvc", "kept")["spec"]["volumeName"]
    handle = guest.get("pv", volume)["spec"]["csi"]["volumeHandle"]
    guest.kubectl("delete", "pvc", "kept", "--wait=true", seconds=300)
    eventually_sync(lambda: guest.get("pv", volume)["status"]["phase"] == "Released", "the claim is gone", 300)
    # Who wants it again takes the old claim's name off it.
    guest.kubectl("patch", "pv", volume, "--type=merge", "-p", json.dumps({"spec": {"claimRef": None}}))
    claim(guest, "again", "64Mi", storageClassName="keeps", volumeName=volume)
    pod(guest, "again", "again", "true")
    assert read(guest, "again", "/data/file") == "the-same-bytes"
    end(guest, "again")
    assert handle in _data_volumes(management)
    body = {"spec": {"persistentVolumeReclaimPolicy": "Delete"}}
    guest.kubectl("patch", "pv", volume, "--type=merge", "-p", json.dumps(body))
    guest.kubectl("delete", "pvc", "again")
    eventually_sync(lambda: handle not in _data_volumes(management), "who deletes it deletes it outside too", 600)
    guest.kubectl("delete", "storageclass", "keeps")


def _data_volumes(management: Cluster) -> list[str]:
    return [one["metadata"]["name"] for one in management.get("datavolumes", "-n", HOSTED)["items"]]


def test_a_block_volume_is_on_two_nodes_at_once_where_the_infra_class_can(guest: Guest) -> None:
    first, second = sorted(guest.ready_nodes())
    claim(guest, "shared", "64Mi", volumeMode="Block", accessModes=["ReadWriteMany"])
    pod(guest, "left", "shared", "true", first, block=True)
    pod(guest, "right", "shared", "true", second, block=True)
    guest.kubectl("exec", "left", "--", "sh", "-c", "echo from-the-left | dd of=/data bs=512 conv=sync,fsync")
    told = guest.kubectl("exec", "right", "--", "sh", "-c", "dd if=/data bs=512 count=1 iflag=direct | head -1")
    assert "from-the-left" in told
    for name in ("left", "right"):
        end(guest, name)
    guest.kubectl("delete", "pvc", "shared")


def test_a_file_system_for_several_nodes_is_refused_on_the_claim(guest: Guest) -> None:
    claim(guest, "refused", "64Mi", accessModes=["ReadWriteMany"])

    def told() -> bool:
        events = guest.get("events", "--field-selector", "involvedObject.name=refused")["items"]
        return any("volumeMode: Block" in one.get("message", "") for one in events)

    eventually_sync(told, "the claim says what to do", 300)
    guest.kubectl("delete", "pvc", "refused")


def test_the_bytes_are_on_the_other_node_soon_after_a_machine_was_killed(management: Cluster, guest: Guest) -> None:
    end(guest, "reader")
    _keep(guest)
    for number in range(KILLS):
        eventually_sync(lambda: len(guest.ready_nodes()) == 2, "both nodes are ready", 900)
        # A node that comes back takes pods when its storage driver is there again: without it there is no other node.
        eventually_sync(lambda: not _out_of_service(guest), "and both take pods", 900)
        eventually_sync(lambda: len(_keepers(guest)) == 1, "the pod runs", 900)
        [(name, node)] = _keepers(guest)
        words = f"bytes-{number}"
        guest.kubectl("exec", name, "--", "sh", "-c", f"echo {words} > /data/kept && sync")
        _kill(management, node)
        began = time.monotonic()
        eventually_sync(lambda node=node: _moved(guest, node), "the pod runs on the other node", 900)  # type: ignore[misc]
        [(name, _)] = _keepers(guest)
        assert read(guest, name, "/data/kept") == words
        assert read(guest, name, "/data/file") == "the-same-bytes"
        print(f"machine {number + 1} killed: bytes read on the other node after {time.monotonic() - began:.0f} s")
    eventually_sync(lambda: len(guest.ready_nodes()) == 2, "the killed node comes back", 900)
    eventually_sync(lambda: not _out_of_service(guest), "and is in service", 300)


def test_the_volume_goes_along_when_its_node_is_drained(management: Cluster, guest: Guest) -> None:
    _keep(guest)
    eventually_sync(lambda: len(_keepers(guest)) == 1, "the pod runs", 900)
    [(_, node)] = _keepers(guest)
    guest.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=900s", seconds=960)
    try:
        eventually_sync(lambda: _moved(guest, node), "the pod runs on the other node", 900)
        [(name, _)] = _keepers(guest)
        assert read(guest, name, "/data/file") == "the-same-bytes"
        eventually_sync(lambda: plugged(management)[node] == [], "the drained machine has no volume", 300)
    finally:
        guest.kubectl("uncordon", node)


def test_the_volume_is_there_again_when_its_machine_has_rebooted(management: Cluster, guest: Guest) -> None:
    _keep(guest)
    eventually_sync(lambda: len(_keepers(guest)) == 1, "the pod runs", 900)
    [(name, node)] = _keepers(guest)
    held, before = plugged(management)[node], _boot(guest, node)
    driver = _driver(guest, node)
    words = ("nsenter", "--mount=/proc/1/ns/mnt", "--", "systemctl", "reboot")
    with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):  # it may be gone before it has answered
        guest.kubectl("exec", "-n", "kube-system", driver, "-c", "csi-driver", "--", *words, seconds=30)
    eventually_sync(lambda: _boot(guest, node) != before, "it has booted again", 900)
    eventually_sync(lambda: read(guest, name, "/data/file") == "the-same-bytes", "the pod has its bytes again", 900)
    assert plugged(management)[node] == held, "nobody took the disk away meanwhile"


def _boot(guest: Guest, node: str) -> str:
    found: str = guest.get("node", node)["status"]["nodeInfo"]["bootID"]
    return found


def _driver(guest: Guest, node: str) -> str:
    [name] = [
        one["metadata"]["name"]
        for one in guest.get("pods", "-n", "kube-system", "-l", "k8s-app=kubevirt-csi-node")["items"]
        if one["spec"]["nodeName"] == node
    ]
    return str(name)


def test_the_volume_outlives_the_machines_of_its_node_pool(management: Cluster, guest: Guest) -> None:
    _keep(guest)
    before = set(guest.ready_nodes())
    text = "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata: {name: pods}\n"
    data = {"config": f"{text}spec: {{kubeletConfig: {{maxPods: {200 + int(time.time()) % 50}}}}}\n"}
    metadata = {"name": "pods", "namespace": "clusters"}
    management.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    body = json.dumps({"spec": {"config": [{"name": "pods"}]}})
    management.kubectl("patch", "nodepool", CLUSTER, "-n", "clusters", "--type=merge", "-p", body)

    def replaced() -> bool:
        names = {one["metadata"]["name"] for one in guest.get("nodes")["items"]}
        return not names & before and len(guest.ready_nodes()) == 2

    eventually_sync(replaced, "all machines are new", 3000)
    eventually_sync(lambda: len(_keepers(guest)) == 1, "the pod runs", 900)
    [(name, node)] = _keepers(guest)
    assert read(guest, name, "/data/file") == "the-same-bytes"
    assert len(plugged(management)[node]) == 1
    guest.kubectl("delete", "deployment", "keeper", "--wait=true")
    eventually_sync(lambda: not _keepers(guest), "its pod is gone", 300)


def _keep(guest: Guest) -> None:
    """A Deployment whose pod has the claim."""
    labels = {"app": "keeper"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(guest, "data", "true")}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "strategy": {"type": "Recreate"}, "template": template}
    metadata = {"name": "keeper", "namespace": "default"}
    apply(guest, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})


def _keepers(guest: Guest) -> list[tuple[str, str]]:
    """Running pods of the Deployment, and their nodes."""
    return [
        (one["metadata"]["name"], one["spec"]["nodeName"])
        for one in guest.get("pods", "-l", "app=keeper")["items"]
        if one["status"]["phase"] == "Running" and not one["metadata"].get("deletionTimestamp")
    ]


def _moved(guest: Guest, node: str) -> bool:
    return [where for _, where in _keepers(guest) if where != node] != []


def _out_of_service(guest: Guest) -> list[str]:
    key = "node.kubernetes.io/out-of-service"
    nodes = guest.get("nodes")["items"]
    return [n["metadata"]["name"] for n in nodes if any(t["key"] == key for t in n["spec"].get("taints") or ())]


def _kill(management: Cluster, node: str) -> None:
    [launcher] = [
        one["metadata"]["name"]
        for one in management.get("pods", "-n", HOSTED, "-l", f"kubevirt.io=virt-launcher,vm.kubevirt.io/name={node}")[
            "items"
        ]
        if one["status"]["phase"] == "Running"
    ]
    management.kubectl("exec", "-n", HOSTED, launcher, "-c", "compute", "--", "sh", "-c", _POWER_CUT, check=False)


@pytest.mark.parametrize("kind", ["mount", "block"])
def test_the_driver_passes_the_sanity_tests_of_the_kubernetes_project(
    management: Cluster, guest: Guest, tmp_path: Path, kind: str
) -> None:
    """The controller beside the control plane and the node side in a machine, each by its own socket."""
    program = payload.ensure(["csi-sanity"])["csi-sanity"] / "bin" / "csi-sanity"
    node = sorted(guest.ready_nodes())[0]
    driver = _driver(guest, node)
    [controller] = [
        one["metadata"]["name"]
        for one in management.get("pods", "-n", HOSTED, "-l", "app=kubevirt-csi-controller")["items"]
        if not one["metadata"].get("deletionTimestamp")
    ]
    binary = str(management.kubectl_binary)
    inside = [binary, f"--kubeconfig={guest.kubeconfig}", "-n", "kube-system"]
    outside = [binary, f"--kubeconfig={management.kubeconfig}", "-n", HOSTED]
    folder = "/var/lib/kubelet/plugins/csi.kubevirt.io"
    with (
        bridged(inside, driver, "csi-driver", f"{folder}/csi.sock") as node_side,
        bridged(outside, controller, "csi-driver", "/csi/csi.sock") as controller_side,
        folders(inside, driver, "csi-driver", tmp_path) as programs,
    ):
        flags = {
            "csi.endpoint": node_side,
            "csi.controllerendpoint": controller_side,
            "csi.mountdir": f"{folder}/sanity-{kind}/mount",
            "csi.stagingdir": f"{folder}/sanity-{kind}/staging",
            "csi.testvolumesize": str(64 << 20),
            "csi.testvolumeexpandsize": str(128 << 20),
            "csi.testvolumeaccesstype": kind,
            "csi.createmountpathcmd": programs["create"],
            "csi.createstagingpathcmd": programs["create"],
            "csi.removemountpathcmd": programs["remove"],
            "csi.removestagingpathcmd": programs["remove"],
            "csi.checkpathcmd": programs["check"],
            # Each is a way through the tunnel into an emulated machine.
            **{f"csi.{step}pathcmdtimeout": "60s" for step in ("create", "remove", "check")},
        }
        done = subprocess.run(
            [program, *(f"--{key}={value}" for key, value in flags.items()), "--ginkgo.no-color", "--ginkgo.v"],
            capture_output=True,
            text=True,
            check=False,
            timeout=3600,
        )
    (Path(os.environ.get("SANITY_LOGS") or tmp_path) / f"sanity-{kind}.log").write_text(done.stdout + done.stderr)
    told = re.search(r"Ran (\d+) of (\d+) Specs", done.stdout)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-5000:]
    assert told and int(told.group(1)) > 50
    print(told.group(0))


def test_what_is_deleted_inside_leaves_nothing_outside(management: Cluster, guest: Guest) -> None:
    guest.kubectl("delete", "pvc", "data", "--wait=true", seconds=300)
    mark = "hypershift.openshift.io/csi"
    eventually_sync(
        lambda: management.get("datavolumes,pvc", "-n", HOSTED, "-l", mark)["items"] == [], "no volume is left", 600
    )
    eventually_sync(lambda: all(not one for one in plugged(management).values()), "no disk is plugged in", 300)
    # KubeVirt holds what is plugged in by pods of their own beside the machines.
    eventually_sync(lambda: _hotplug_pods(management) == [], "and no pod holds any", 300)
    assert not re.search(r"\d+ volumes?$", _status(management))


def _hotplug_pods(management: Cluster) -> list[str]:
    found = management.get("pods", "-n", HOSTED, "-l", "kubevirt.io=hotplug-disk")["items"]
    return [one["metadata"]["name"] for one in found]


def test_mapped_classes_are_those_the_guide_maps(management: Cluster, tmp_path: Path) -> None:
    access = ("--kubeconfig", str(management.kubeconfig))
    release = management.get("hostedcluster", CLUSTER, "-n", "clusters")["spec"]["release"]["image"]
    secret = tmp_path / "pull-secret.json"
    secret.write_text('{"auths": {}}')
    _infra_class_that_keeps(management)
    hcp(
        *("create", "cluster", "kubevirt", "--name", "mapped", "--pull-secret", str(secret), *access),
        *("--node-pool-replicas", "1", "--release-image", release, *SMALL_VM),
        *("--control-plane-availability-policy", "SingleReplica", "--wait", "--timeout", "30m"),
        *(
            "--infra-storage-class-mapping=hcp-local/gold,group=a",
            "--infra-storage-class-mapping=local-path/tin,group=b",
            "--infra-storage-class-mapping=local-kept/lead,group=b",
        ),
        "--infra-volumesnapshot-class-mapping=hcp-local/gold-snap,group=a",
    )
    try:
        guest = Guest.of(management, "mapped")
        eventually_sync(lambda: len(guest.get("storageclass")["items"]) == 3, "all classes are there", 300)
        made = {one["metadata"]["name"]: one for one in guest.get("storageclass")["items"]}
        assert {name: one["parameters"]["infraStorageClassName"] for name, one in made.items()} == {
            "gold": "hcp-local",
            "tin": "local-path",
            "lead": "local-kept",
        }
        assert {one["reclaimPolicy"] for one in made.values()} == {"Delete"}
        assert made["gold"]["allowVolumeExpansion"] and not made["tin"]["allowVolumeExpansion"]
        assert guest.get("volumesnapshotclass", "gold-snap")["parameters"] == {"infraSnapshotClassName": "hcp-local"}
        for name in ("gold", "tin"):
            claim(guest, name, storageClassName=name)
            pod(guest, name, name, f"echo {name} > /data/file")
            assert read(guest, name, "/data/file") == name
            cut(guest, name, name, "gold-snap")
        eventually_sync(lambda: cut_status(guest, "gold").get("readyToUse") is True, "a snapshot within the group", 600)
        eventually_sync(lambda: "error" in cut_status(guest, "tin"), "no snapshot of another group", 600)
        assert "same group" in cut_status(guest, "tin")["error"]["message"]
        _what_the_infra_class_keeps_is_kept(management, guest)
        _tin_becomes_something_else(management, guest)
    finally:
        hcp("destroy", "cluster", "kubevirt", "--name", "mapped", *access)
    eventually_sync(
        lambda: [cls for _, cls in _volumes_of(management, MAPPED)] in (["local-kept"], []),
        "its volumes went with it, but for what the infra class keeps",
        300,
    )
    for name, _ in _volumes_of(management, MAPPED):
        management.kubectl("delete", "pv", name)
    management.kubectl("delete", "storageclass", "local-kept")


def _infra_class_that_keeps(management: Cluster) -> None:
    """Like local-path, but for the reclaim policy."""
    plain = management.get("storageclass", "local-path")
    same = {key: plain[key] for key in ("provisioner", "parameters", "volumeBindingMode") if key in plain}
    made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local-kept"}}
    management.apply({**made, **same, "reclaimPolicy": "Retain"})

    def known() -> bool:
        return "local-kept" in [one["metadata"]["name"] for one in management.get("storageprofile")["items"]]

    eventually_sync(known, "CDI has seen the class", 300)
    body = json.dumps({"spec": management.get("storageprofile", "local-path")["spec"]})
    management.kubectl("patch", "storageprofile", "local-kept", "--type=merge", "-p", body)


def _what_the_infra_class_keeps_is_kept(management: Cluster, guest: Guest) -> None:
    """The tenant deletes its claim; what becomes of the data is the owner's of the infra class to say."""
    claim(guest, "lead", "64Mi", storageClassName="lead")
    pod(guest, "lead", "lead", "echo lead > /data/file")
    end(guest, "lead")
    guest.kubectl("delete", "pvc", "lead", "--wait=true", seconds=300)

    def kept() -> bool:
        phases = {cls: management.get("pv", name)["status"]["phase"] for name, cls in _volumes_of(management, MAPPED)}
        return phases.get("local-kept") == "Released"

    eventually_sync(kept, "the infra volume is kept, without its claim", 600)
    eventually_sync(lambda: "lead" not in _classes_of_volumes(guest), "inside nothing is left of it", 300)


def _classes_of_volumes(guest: Guest) -> list[str]:
    return [one["spec"]["storageClassName"] for one in guest.get("pv")["items"]]


def _tin_becomes_something_else(management: Cluster, guest: Guest) -> None:
    """A mapping may change at any time: classes follow, and volumes stay what they are."""
    mapping = [
        {"infraStorageClassName": "hcp-local", "guestStorageClassName": name, "group": "a"} for name in ("gold", "tin")
    ]
    snapshots = [
        {"infraVolumeSnapshotClassName": "hcp-local", "guestVolumeSnapshotClassName": "gold-snap", "group": "a"}
    ]
    manual = {"storageClassMapping": mapping, "volumeSnapshotClassMapping": snapshots}
    body = {"spec": {"platform": {"kubevirt": {"storageDriver": {"type": "Manual", "manual": manual}}}}}
    management.kubectl(*("patch", "hostedcluster", "mapped", "-n", "clusters", "--type=merge", "-p", json.dumps(body)))

    def followed() -> bool:
        found = {one["metadata"]["name"]: one["parameters"] for one in guest.get("storageclass")["items"]}
        return {name: one["infraStorageClassName"] for name, one in found.items()} == {
            "gold": "hcp-local",
            "tin": "hcp-local",
        }

    eventually_sync(followed, "tin means something else, lead is gone", 300)
    assert guest.get("storageclass", "tin")["allowVolumeExpansion"] is True
    assert read(guest, "tin", "/data/file") == "tin", "what is there stays as it is"
    claim(guest, "tin-2", storageClassName="tin")
    pod(guest, "tin-2", "tin-2", "echo tin-2 > /data/file")
    assert read(guest, "tin-2", "/data/file") == "tin-2"
    volume = guest.get("pvc", "tin-2")["spec"]["volumeName"]
    handle = guest.get("pv", volume)["spec"]["csi"]["volumeHandle"]
    assert management.get("pvc", handle, "-n", MAPPED)["spec"]["storageClassName"] == "hcp-local"


def _claimed_in(volume: dict[str, Any]) -> str:
    return str((volume["spec"].get("claimRef") or {}).get("namespace") or "")


def _volumes_of(management: Cluster, namespace: str) -> list[tuple[str, str]]:
    """Infra volumes with their classes."""
    found = [one for one in management.get("pv")["items"] if _claimed_in(one) == namespace]
    return [(one["metadata"]["name"], one["spec"]["storageClassName"]) for one in found]
