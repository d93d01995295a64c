"""What a cluster that starts from a snapshot says, and how its etcd's pod looks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hcp.api import conditions as c
from hcp.api import names
from hcp.controlplane import etcd, etcd_restore
from hcp.controlplane.params import Params
from hcp.hostedcluster import restore_status
from hcp.hostedcluster.observed import Observed

READY = {"spec": {"replicas": 1}, "status": {"readyReplicas": 1}}
SENT = {names.ANNOTATION_RESTORE_SNAPSHOT: "a" * 64, names.ANNOTATION_RESTORED_FROM_BACKUP: "x"}
P = Params("demo", "clusters", "clusters-demo", "demo-x", "id", images={"etcd": "etcd:1"})


def cluster(annotations: dict[str, str] | None = None, url: str = "", **status: Any) -> dict[str, Any]:
    etcd_spec = {"managed": {"storage": {"restoreSnapshotURL": [url]}}} if url else {}
    return {"metadata": {"annotations": annotations or {}}, "spec": {"etcd": etcd_spec}, "status": status}


def test_a_new_cluster_says_nothing_of_snapshots() -> None:
    assert restore_status.verdicts(cluster(), Observed(etcd=READY)) == {}


def test_waiting_restored_and_for_good() -> None:
    said = restore_status.verdicts(cluster(SENT), Observed())
    assert said[c.ETCD_SNAPSHOT_RESTORED][:2] == (False, c.WAITING_FOR_SNAPSHOT)
    assert said[c.RESTORED_FROM_BACKUP][:2] == (False, c.RESTORE_IN_PROGRESS)
    assert restore_status.verdicts(cluster(SENT), Observed(etcd=READY))[c.ETCD_SNAPSHOT_RESTORED][0] is True
    known = [{"type": kind, "status": "True"} for kind in (c.ETCD_SNAPSHOT_RESTORED, c.RESTORED_FROM_BACKUP)]
    said = restore_status.verdicts(cluster(SENT, conditions=known), Observed())
    assert [value for value, _, _ in said.values()] == [True, True]


def test_an_address_that_cannot_be_asked_is_told() -> None:
    said = restore_status.verdicts(cluster(url="s3://b/x"), Observed(restore_problem="because"))
    assert said == {c.ETCD_SNAPSHOT_RESTORED: (False, c.INVALID_SNAPSHOT_URL, "etcd is not started: because")}


@pytest.mark.parametrize(
    ("p", "image", "problem"),
    [
        (replace(P, etcd_snapshot_url="s3://b/x"), "hcp:1", "signed https:// address"),
        (replace(P, etcd_snapshot_url="https://b/x"), "", "does not know its own image"),
        (replace(P, annotations={names.ANNOTATION_RESTORE_SNAPSHOT: "$(rm)"}), "hcp:1", "is no SHA-256"),
        (replace(P, etcd_snapshot_url="https://b/x"), "hcp:1", ""),
        (replace(P, annotations=SENT), "hcp:1", ""),
    ],
)
def test_what_keeps_a_snapshot_from_being_taken(p: Params, image: str, problem: str) -> None:
    assert etcd_restore.asked(p)
    found = etcd_restore.problem(p, image)
    assert problem in found if problem else not found


def test_only_a_cluster_that_asks_has_a_container_before_etcd() -> None:
    assert not etcd_restore.asked(P)
    assert "initContainers" not in etcd.stateful_set(P, "x")["spec"]["template"]["spec"]
    p = replace(P, highly_available=True, etcd_snapshot_url="https://b/x?signature=s")
    made = etcd.stateful_set(p, "x", [etcd_restore.filler(p, "hcp:1")])["spec"]["template"]["spec"]
    [first] = made["initContainers"]
    assert first["image"] == "hcp:1"
    assert "--url=https://b/x?signature=s" in first["command"]
    arguments = made["containers"][0]["command"]
    for flag in ("--initial-cluster=", "--initial-cluster-token=", "--initial-advertise-peer-urls="):
        [mine] = [word for word in first["command"] if word.startswith(flag)]
        assert mine in arguments, "a member that was restored under another name would not be found"
