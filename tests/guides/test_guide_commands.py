"""Every `hcp` and `hypershift` command line of the users' guides works as typed.

Only the parts in angle brackets are filled in, with the values the guides themselves suggest; `--render` is added, so
that what the line means can be looked at without a cluster.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

KUBECONFIG = "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {server: https://infra.example.com}\n"
WORKERS = "--name example --node-pool-replicas 2 --pull-secret $PULL_SECRET --memory 6Gi --cores 2"
DIGEST = "sha256:382f271581b9b907484d552bd145e9a5678e9366330059d31b007f4445d99e36"

# Title: (command line, path into the documents, what is there)
LINES: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "external infrastructure": (
        "hcp create cluster kubevirt --name $CLUSTER_NAME --node-pool-replicas $WORKER_COUNT"
        " --pull-secret $PULL_SECRET --memory $MEM --cores $CPU --infra-namespace=clusters-example"
        " --infra-kubeconfig-file=$HOME/external-infra-kubeconfig",
        [
            ("HostedCluster.spec.platform.kubevirt.credentials.infraNamespace", "clusters-example"),
            (
                "HostedCluster.spec.platform.kubevirt.credentials.infraKubeConfigSecret.name",
                "example-infra-credentials",
            ),
            ("NodePool.spec.replicas", 2),
            ("NodePool.spec.platform.kubevirt.compute", {"cores": 2, "memory": "6Gi"}),
        ],
    ),
    "a storage class mapping": (
        f"hcp create cluster kubevirt {WORKERS} --infra-storage-class-mapping=infra-class/hosted-class",
        [
            ("HostedCluster.spec.platform.kubevirt.storageDriver.type", "Manual"),
            (
                "HostedCluster.spec.platform.kubevirt.storageDriver.manual.storageClassMapping",
                [{"infraStorageClassName": "infra-class", "guestStorageClassName": "hosted-class"}],
            ),
        ],
    ),
    "a snapshot class mapping": (
        f"hcp create cluster kubevirt {WORKERS} --infra-storage-class-mapping=infra-class/hosted-class"
        " --infra-volumesnapshot-class-mapping=infra-snap/hosted-snap",
        [
            (
                "HostedCluster.spec.platform.kubevirt.storageDriver.manual.volumeSnapshotClassMapping",
                [{"infraVolumeSnapshotClassName": "infra-snap", "guestVolumeSnapshotClassName": "hosted-snap"}],
            ),
        ],
    ),
    "several mappings in groups": (
        f"hcp create cluster kubevirt {WORKERS}"
        " --infra-storage-class-mapping=infra-storage-class-mygroup/hosted-storage-class-mygroup,group=mygroup"
        " --infra-storage-class-mapping=infra-storage-class-mymap/hosted-storage-class-mymap,group=mymap"
        " --infra-volumesnapshot-class-mapping=infra-vol-snap-mygroup/hosted-vol-snap-mygroup,group=mygroup"
        " --infra-volumesnapshot-class-mapping=infra-vol-snap-mymap/hosted-vol-snap-mymap,group=mymap",
        [
            ("HostedCluster.spec.platform.kubevirt.storageDriver.manual.storageClassMapping.1.group", "mymap"),
            ("HostedCluster.spec.platform.kubevirt.storageDriver.manual.volumeSnapshotClassMapping.0.group", "mygroup"),
        ],
    ),
    "root volume": (
        f"hcp create cluster kubevirt {WORKERS} --root-volume-storage-class ocs-storagecluster-ceph-rbd"
        " --root-volume-size 64",
        [
            (
                "NodePool.spec.platform.kubevirt.rootVolume.persistent",
                {"size": "64Gi", "storageClass": "ocs-storagecluster-ceph-rbd"},
            ),
        ],
    ),
    "image caching": (
        f"hcp create cluster kubevirt {WORKERS} --root-volume-cache-strategy=PVC",
        [("NodePool.spec.platform.kubevirt.rootVolume.cacheStrategy", {"type": "PVC"})],
    ),
    "etcd storage": (
        f"hcp create cluster kubevirt {WORKERS} --etcd-storage-class=lvm-storageclass",
        [("HostedCluster.spec.etcd.managed.storage.persistentVolume.storageClassName", "lvm-storageclass")],
    ),
    "a GPU": (
        f'hcp create cluster kubevirt {WORKERS} --host-device-name="nvidia-a100,count:2"',
        [("NodePool.spec.platform.kubevirt.hostDevices", [{"deviceName": "nvidia-a100", "count": 2}])],
    ),
    "base domain": (
        f"hcp create cluster kubevirt {WORKERS} --base-domain hypershift.lab",
        [("HostedCluster.spec.dns.baseDomain", "hypershift.lab"), ("HostedCluster.spec.platform.kubevirt", {})],
    ),
    "the bare metal guide": (
        "hypershift create cluster kubevirt --name $CLUSTER_NAME --node-pool-replicas=2 --memory '8Gi'"
        f" --pull-secret $PULL_SECRET --release-image=quay.io/openshift-release-dev/ocp-release@{DIGEST}",
        [
            ("HostedCluster.spec.release.image", f"quay.io/openshift-release-dev/ocp-release@{DIGEST}"),
            ("HostedCluster.spec.controllerAvailabilityPolicy", "SingleReplica"),
            ("NodePool.spec.platform.kubevirt.compute.memory", "8Gi"),
        ],
    ),
}


def look(documents: list[dict[str, Any]], path: str) -> Any:
    kind, *steps = path.split(".")
    found: Any = next(document for document in documents if document["kind"] == kind)
    for step in steps:
        found = found[int(step)] if step.isdigit() else found[step]
    return found


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """The variables the guides export, and a home with the files they name."""
    (tmp_path / "pull-secret").write_text('{"auths": {}}')
    (tmp_path / "external-infra-kubeconfig").write_text(KUBECONFIG)
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "CLUSTER_NAME": "example",
        "PULL_SECRET": f"{tmp_path}/pull-secret",
        "MEM": "6Gi",
        "CPU": "2",
        "WORKER_COUNT": "2",
    }


@pytest.mark.parametrize("title", LINES)
def test_line(title: str, shell: dict[str, str]) -> None:
    line, facts = LINES[title]
    done = subprocess.run(
        ["bash", "-c", f"{line} --render"], env=shell, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    documents = [document for document in yaml.safe_load_all(done.stdout) if document is not None]
    for path, value in facts:
        if path == "HostedCluster.spec.platform.kubevirt":
            assert "baseDomainPassthrough" not in look(documents, path)
        else:
            assert look(documents, path) == value, path
