"""What is told about each part of a control plane."""

from __future__ import annotations

import datetime as dt
from typing import Any

from tests.support.unit.controlplane import params

from hcp.hostedcluster import components
from hcp.hostedcluster.observed import Observed


def workload(kind: str, have: int, wanted: int) -> dict[str, Any]:
    status = {"observedGeneration": 1, "replicas": wanted, "updatedReplicas": wanted, "availableReplicas": have}
    conditions = [{"type": "Available", "status": "True"}]
    return {
        "kind": kind,
        "metadata": {"generation": 1},
        "spec": {"replicas": wanted},
        "status": {**status, "conditions": conditions},
    }


def conditions(made: dict[str, Any]) -> dict[str, str]:
    return {one["type"]: one["status"] for one in made["status"]["conditions"]}


def test_every_part_that_exists_is_told() -> None:
    seen = Observed(etcd=workload("StatefulSet", 1, 1), deployments={"kube-apiserver": workload("Deployment", 1, 1)})
    assert sorted(components.workloads_of(seen)) == ["etcd", "kube-apiserver"]


def test_a_part_that_is_rolled_out_has_the_version() -> None:
    p = params()
    made = components.component(p, "kube-apiserver", workload("Deployment", 1, 1), None, "t1")
    assert conditions(made) == {"Available": "True", "RolloutComplete": "True"}
    assert made["status"]["version"] == p.version
    assert made["status"]["resources"] == [{"group": "apps", "kind": "Deployment", "name": "kube-apiserver"}]


def test_two_of_three_members_answer_and_the_version_stays_the_old_one() -> None:
    p = params()
    before = {"status": {"version": "1.35.4", "conditions": []}}
    made = components.component(p, "etcd", workload("StatefulSet", 2, 3), before, "t1")
    assert conditions(made) == {"Available": "True", "RolloutComplete": "False"}
    assert made["status"]["version"] == "1.35.4"


def test_nothing_changes_when_nothing_changed() -> None:
    p, up = params(), workload("Deployment", 1, 1)
    first = components.component(p, "kube-scheduler", up, None, "t1")
    assert components.component(p, "kube-scheduler", up, first, "t2") == first


def test_a_part_that_starts_is_told_of_when_it_is_complete_or_late() -> None:
    born = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    part = workload("Deployment", 0, 1)
    part["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    assert components.due(part, None, born + dt.timedelta(seconds=10)) == 20.0
    assert components.due(part, None, born + dt.timedelta(seconds=30)) == 0.0
    assert components.due(part, {"status": {}}, born) == 0.0, "what is told already stays true"
    part["status"]["availableReplicas"] = 1
    assert components.due(part, None, born) == 0.0
