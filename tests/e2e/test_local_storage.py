"""Storage of an embedded cluster (`--with storage`) by pods and claims, with the real sidecars. Needs root, no machine.

The sidecars are compiled when nobody did it before, which takes long.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.e2e.local_tools import Cluster, hcp, namespace
from tests.support.eventually import eventually_sync

from hcp.csi.local.names import CLASS, DRIVER, SNAPSHOT_CLASS
from hcp.local.node.volumes import missing
from hcp.local.state.layout import Layout

NAME = "e2e-storage"
NS = "tenant"
MIB = 1 << 20
SNAPSHOTS = "snapshot.storage.k8s.io"

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"this kernel lacks what the driver needs: {missing()}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    hcp("local", "up", "--name", NAME, "--profile", "cluster", "--volumes", "4Gi", "--with", "storage")
    try:
        found = Cluster(NAME, tmp_path_factory.mktemp("kubeconfig"))
        found.apply(namespace(NS))
        yield found
    finally:
        hcp("local", "down", "--name", NAME, "--purge")
        assert not Layout.of(NAME).root.exists()


def claim(name: str, size: int = 64 * MIB, *, block: bool = False, source: Any = None) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteMany"],
        "volumeMode": "Block" if block else "Filesystem",
        "storageClassName": CLASS,
        "resources": {"requests": {"storage": str(size)}},
    }
    if source is not None:
        spec["dataSource"] = source
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": NS},
        "spec": spec,
    }


def snapshot(name: str, source: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{SNAPSHOTS}/v1",
        "kind": "VolumeSnapshot",
        "metadata": {"name": name, "namespace": NS},
        "spec": {"volumeSnapshotClassName": SNAPSHOT_CLASS, "source": {"persistentVolumeClaimName": source}},
    }


def of_snapshot(name: str) -> dict[str, str]:
    return {"apiGroup": SNAPSHOTS, "kind": "VolumeSnapshot", "name": name}


def of_claim(name: str) -> dict[str, str]:
    return {"kind": "PersistentVolumeClaim", "name": name}


def pod(cluster: Cluster, name: str, volume: str, *, block: bool = False) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "user",
        "image": cluster.image(),
        "command": ["python3", "-c", "import signal; signal.pause()"],
        "securityContext": {"runAsUser": 0},
    }
    if block:
        container["volumeDevices"] = [{"name": "data", "devicePath": "/dev/data"}]
    else:
        container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NS},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": volume}}],
        },
    }


def run(cluster: Cluster, name: str, program: str) -> str:
    return cluster.kubectl("exec", "-n", NS, name, "--", "python3", "-c", program).strip()


def write(cluster: Cluster, name: str, text: str, path: str = "/data/state") -> None:
    run(cluster, name, f"import os; f=open({path!r},'r+b' if os.path.exists({path!r}) else 'wb'); "
        f"f.write({text.encode()!r}); f.flush(); os.fsync(f.fileno())")  # fmt: skip


def read(cluster: Cluster, name: str, length: int = 100, path: str = "/data/state") -> str:
    return run(cluster, name, f"print(open({path!r},'rb').read({length}).decode())")


def remove(cluster: Cluster, *things: str) -> None:
    cluster.kubectl("delete", "-n", NS, "--wait=true", *things)


def volumes_left(cluster: Cluster) -> list[str]:
    return [
        item["metadata"]["name"]
        for item in cluster.get("persistentvolumes")["items"]
        if item["spec"].get("csi", {}).get("driver") == DRIVER
    ]


def test_the_class_that_can_more_is_the_default_and_folders_stay(cluster: Cluster) -> None:
    classes = {item["metadata"]["name"]: item for item in cluster.get("storageclasses")["items"]}
    default = "storageclass.kubernetes.io/is-default-class"
    assert {name: item["metadata"]["annotations"][default] for name, item in classes.items()} == {
        CLASS: "true",
        "local-path": "false",
    }
    assert cluster.get("volumesnapshotclass", SNAPSHOT_CLASS)["driver"] == DRIVER


def test_two_pods_share_files_a_snapshot_keeps_them_and_a_clone_has_them(cluster: Cluster) -> None:
    cluster.apply(claim("shared"), pod(cluster, "one", "shared"), pod(cluster, "two", "shared"))
    cluster.wait_pods(NS, "one", "two", seconds=300)
    write(cluster, "one", "first")
    assert read(cluster, "two") == "first"
    cluster.apply(snapshot("moment", "shared"))
    eventually_sync(
        lambda: cluster.get("volumesnapshot", "moment", "-n", NS)["status"]["readyToUse"], "the snapshot is ready", 300
    )
    write(cluster, "two", "later")
    cluster.apply(
        claim("restored", source=of_snapshot("moment")),
        claim("cloned", 96 * MIB, source=of_claim("shared")),
        pod(cluster, "old", "restored"),
        pod(cluster, "copy", "cloned"),
    )
    cluster.wait_pods(NS, "old", "copy", seconds=300)
    assert read(cluster, "old") == "first"
    assert read(cluster, "copy") == "later"
    remove(cluster, "pod/one", "pod/two", "pod/old", "pod/copy")
    remove(cluster, "volumesnapshot/moment", "pvc/shared", "pvc/restored", "pvc/cloned")
    eventually_sync(lambda: not volumes_left(cluster), "the volumes are gone", 300)


def test_a_claim_grows_under_its_pod(cluster: Cluster) -> None:
    cluster.apply(claim("growing", 32 * MIB), pod(cluster, "grower", "growing"))
    cluster.wait_pods(NS, "grower", seconds=300)
    fill = "import os\nd=os.open('/data/x',os.O_WRONLY|os.O_CREAT)\nn=0\ntry:\n while n<200: os.write(d,os.urandom(1<<20)); os.fsync(d); n+=1\nexcept OSError: pass\nprint(n)"  # noqa: E501
    assert 32 <= int(run(cluster, "grower", fill)) < 60
    patch = {"spec": {"resources": {"requests": {"storage": str(96 * MIB)}}}}
    cluster.kubectl("patch", "pvc", "growing", "-n", NS, "--type=merge", "-p", json.dumps(patch))
    eventually_sync(
        lambda: cluster.get("pvc", "growing", "-n", NS)["status"]["capacity"]["storage"] in ("96Mi", str(96 * MIB)),
        "the claim has its new size",
        300,
    )
    assert 96 <= int(run(cluster, "grower", fill)) < 130
    remove(cluster, "pod/grower", "pvc/growing")


def test_a_block_volume_is_shared_and_restored(cluster: Cluster) -> None:
    cluster.apply(claim("disk", block=True), pod(cluster, "first", "disk", block=True))
    cluster.apply(pod(cluster, "second", "disk", block=True))
    cluster.wait_pods(NS, "first", "second", seconds=300)
    write(cluster, "first", "kept", "/dev/data")
    assert read(cluster, "second", 4, "/dev/data") == "kept"
    cluster.apply(snapshot("of-disk", "disk"))
    eventually_sync(
        lambda: cluster.get("volumesnapshot", "of-disk", "-n", NS)["status"]["readyToUse"], "the snapshot is ready", 300
    )
    write(cluster, "first", "lost", "/dev/data")
    cluster.apply(
        claim("disk-again", 96 * MIB, block=True, source=of_snapshot("of-disk")),
        pod(cluster, "third", "disk-again", block=True),
    )
    cluster.wait_pods(NS, "third", seconds=300)
    assert read(cluster, "third", 4, "/dev/data") == "kept"
    size = "import os; d=os.open('/dev/data',os.O_RDONLY); print(os.lseek(d,0,os.SEEK_END))"
    assert int(run(cluster, "third", size)) == 96 * MIB
    remove(cluster, "pod/first", "pod/second", "volumesnapshot/of-disk", "pvc/disk")


def test_volumes_come_back_with_the_cluster_also_block_ones_in_use(cluster: Cluster) -> None:
    """The pod of the test before still has its disk: the node ends without anybody asking the driver."""
    cluster.apply(claim("lasting"), pod(cluster, "writer", "lasting"))
    cluster.wait_pods(NS, "writer", seconds=300)
    write(cluster, "writer", "still here")
    hcp("local", "down", "--name", NAME)
    hcp("local", "up", "--name", NAME)
    eventually_sync(lambda: read(cluster, "writer") == "still here", "the volume is back", 300)
    eventually_sync(lambda: read(cluster, "third", 4, "/dev/data") == "kept", "the disk is back", 300)
    remove(cluster, "pod/writer", "pod/third", "pvc/lasting", "pvc/disk-again")
    eventually_sync(lambda: not volumes_left(cluster), "the volumes are gone", 300)


def test_a_cluster_without_a_node_cannot_have_it() -> None:
    done = hcp("local", "up", "--name", f"{NAME}-api", "--profile", "api", "--with", "storage", check=False)
    hcp("local", "down", "--name", f"{NAME}-api", "--purge", check=False)
    assert done.returncode != 0
    assert "clusters with a node" in done.stderr
