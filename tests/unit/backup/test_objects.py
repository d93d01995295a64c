"""What of a backup is written, and what of a stranger's is not."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from hcp.api import names
from hcp.backup import objects, restoring
from hcp.backup.content import Snapshot, Whole
from hcp.backup.objects import KEYS, Kept
from hcp.backup.sealing import BrokenBackup, Lock, new_header
from hcp.controlplane import encryption
from hcp.errors import HcpError

Object = dict[str, Any]
HOSTED = "clusters-demo"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def secret(name: str, namespace: str = HOSTED, **more: Any) -> Object:
    meta = {"name": name, "namespace": namespace, "uid": "1", "resourceVersion": "7", "finalizers": ["x/y"]}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": {"k": b64("v")}, **more}


def cluster(**spec: Any) -> Object:
    return {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {
            "name": "demo",
            "namespace": "clusters",
            "uid": "u",
            "ownerReferences": [{"uid": "z"}],
            "annotations": {"team": "red", names.ANNOTATION_RESTORE_SNAPSHOT: "old"},
        },
        "spec": {"pullSecret": {"name": "pull"}, "platform": {"type": "KubeVirt"}, **spec},
        "status": {"x": 1},
    }


def pool() -> Object:
    meta = {"name": "demo", "namespace": "clusters", "annotations": {names.MARK_CURRENT_CONFIG: "abc"}}
    spec = {"clusterName": "demo", "replicas": 2, "config": [{"name": "sysctl"}]}
    return {"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "NodePool", "metadata": meta, "spec": spec}


def backup() -> list[Object]:
    sysctl = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "sysctl", "namespace": "clusters"},
        "data": {},
    }
    return [cluster(), pool(), secret("pull", "clusters"), sysctl, *(secret(name) for name in KEYS)]


def accept(found: list[Object]) -> Kept:
    return objects.accept(copy.deepcopy(found), "clusters", "demo")


def test_a_backup_of_ours_is_accepted_without_what_belongs_to_the_old_place() -> None:
    kept = accept(backup())
    assert kept.cluster["metadata"] == {"name": "demo", "namespace": "clusters", "annotations": {"team": "red"}}
    assert "status" not in kept.cluster
    assert kept.pools[0]["metadata"] == {"name": "demo", "namespace": "clusters"}
    assert {one["metadata"]["name"] for one in kept.given} == {"pull", "sysctl"}
    assert [one["metadata"]["name"] for one in kept.keys] == list(KEYS)
    for one in kept.keys:
        assert one["metadata"]["labels"] == {names.LABEL_CONTROL_PLANE_NAMESPACE: HOSTED}
        assert set(one["metadata"]) == {"name", "namespace", "labels"}
    assert (kept.hosted, kept.members) == (HOSTED, 1)


def test_marks_of_a_rotation_stay_and_those_of_a_former_deployment_go() -> None:
    found = backup()
    root = next(one for one in found if one["metadata"]["name"] == "root-ca")
    root["metadata"]["annotations"] = {
        names.ANNOTATION_ROTATION_STAGE: "Reissuing",
        encryption.GENERATION: "9",
        "evil.example/x": "y",
    }
    [kept] = [one for one in accept(found).keys if one["metadata"]["name"] == "root-ca"]
    assert kept["metadata"]["annotations"] == {names.ANNOTATION_ROTATION_STAGE: "Reissuing"}


@pytest.mark.parametrize(
    "stranger",
    [
        secret("root-ca", "kube-system"),
        secret("cluster-admin"),
        secret("unnamed", "clusters"),
        secret("../pull", "clusters"),
        {**secret("pull", "clusters"), "kind": "Pod"},
        {**secret("pull", "clusters"), "type": "kubernetes.io/service-account-token"},
        {**secret("pull", "clusters"), "data": {"a": 1}},
        {**secret("pull", "clusters"), "data": {"a": "not base64!"}},
        {**secret("x"), "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"},
        {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "clusters"}},
        {"kind": "Secret", "apiVersion": "v1", "metadata": None},
        {},
        cluster(),
        {**pool(), "spec": {"clusterName": "other"}},
        {**pool(), "metadata": {"name": "demo", "namespace": "elsewhere"}},
        {**pool(), "metadata": {"name": "demo", "namespace": "clusters", "labels": {"a": {}}}},
    ],
)
def test_whatever_else_is_in_it_the_whole_backup_is_refused(stranger: Object) -> None:
    with pytest.raises(BrokenBackup, match="the backup is refused"):
        accept([*backup(), stranger])


def test_a_backup_without_a_key_is_refused() -> None:
    with pytest.raises(BrokenBackup, match="it lacks sa-signing-key"):
        accept([one for one in backup() if one["metadata"]["name"] != "sa-signing-key"])


def test_a_cluster_of_another_name_is_refused() -> None:
    with pytest.raises(BrokenBackup, match="exactly the HostedCluster clusters/other"):
        objects.accept(backup(), "clusters", "other")
    bad = [{**cluster(), "metadata": {"name": "clusters", "namespace": "clusters"}}]
    with pytest.raises(HcpError):
        objects.accept(bad, "clusters", "clusters")


def test_what_needs_a_right_of_its_own_is_named() -> None:
    assert objects.privileged(accept(backup())) == []
    found = backup()
    found[0]["metadata"]["annotations"][names.ANNOTATION_IMAGE_OVERRIDES] = "etcd=evil.example/etcd"
    found[0]["metadata"]["annotations"][f"{names.ANNOTATION_RESOURCE_OVERRIDE_PREFIX}etcd.etcd"] = "cpu=1"
    found[0]["spec"]["tolerations"] = [{"operator": "Exists"}]
    assert objects.privileged(accept(found)) == ["images", "resource-requests", "tolerations"]


def test_names_are_found_wherever_a_spec_has_them() -> None:
    spec = {
        "sshKey": {"name": "ssh"},
        "configuration": {"oauth": {"identityProviders": [{"x": {"ca": {"name": "ca"}}}]}},
    }
    found = objects.named(cluster(**spec), [pool()])
    assert found == {"pull", "ssh", "ca", "sysctl", "demo-etcd-encryption-key"}


def test_a_restored_cluster_is_paused_marked_and_asks_no_older_address() -> None:
    storage = {"storage": {"type": "PersistentVolume", "restoreSnapshotURL": ["https://old"]}}
    found = backup()
    found[0]["spec"]["etcd"] = {"managementType": "Managed", "managed": storage}
    kept = accept(found)
    whole = Whole(new_header(Lock(), {}), [], Snapshot(1, "a" * 64, 1, 1, 1, 1, 1))
    made = restoring.wanted_cluster(kept, whole, "clusters_demo_20260131T020000Z")
    assert made["spec"]["pausedUntil"] == "true"
    assert made["spec"]["etcd"]["managed"]["storage"] == {"type": "PersistentVolume"}
    notes = made["metadata"]["annotations"]
    assert notes[names.ANNOTATION_RESTORE_SNAPSHOT] == "a" * 64
    assert notes[names.ANNOTATION_RESTORED_FROM_BACKUP] == "clusters_demo_20260131T020000Z"
    assert notes["team"] == "red"


@pytest.mark.parametrize(
    ("state", "waits"),
    [
        ({"running": {}}, True),
        ({"terminated": {"exitCode": 0}}, False),
        ({"terminated": {"exitCode": 1}}, None),
        ({"waiting": {"reason": "ImagePullBackOff"}}, None),
    ],
)
def test_a_pod_says_whether_it_waits_for_its_snapshot(state: Object, waits: bool | None) -> None:
    pod = {"status": {"initContainerStatuses": [{"name": "restore-snapshot", "state": state}]}}
    assert restoring.waits(pod) is waits
    assert restoring.waits(None) is None
