"""Which changes of what was made for a cluster ask for a pass over it."""

from __future__ import annotations

from typing import Any

from hcp.hostedcluster.controller import asked, asked_and_counted

Object = dict[str, Any]


def workload(version: str, *conditions: tuple[str, str, str], **counts: int) -> Object:
    told = [
        {"type": kind, "status": status, "message": message, "lastUpdateTime": version}
        for kind, status, message in conditions
    ]
    return {
        "kind": "Deployment",
        "metadata": {"name": "x", "resourceVersion": version, "managedFields": [version]},
        "spec": {"replicas": 1},
        "status": {**counts, "conditions": told},
    }


def test_how_a_roll_out_gets_on_asks_for_nothing() -> None:
    before = workload("1", ("Available", "False", "none"), ("Progressing", "True", "made"), replicas=1)
    after = workload("2", ("Available", "False", "none"), ("Progressing", "True", "goes on"), replicas=1)
    assert asked_and_counted(before) == asked_and_counted(after)


def test_pods_that_come_and_refusals_ask_for_a_pass() -> None:
    before = workload("1", ("Available", "False", "none"), replicas=1)
    for after in (
        workload("2", ("Available", "False", "none"), replicas=1, availableReplicas=1),
        workload("2", ("Available", "True", "some"), replicas=1),
        workload("2", ("Available", "False", "none"), ("ReplicaFailure", "True", "quota"), replicas=1),
    ):
        assert asked_and_counted(before) != asked_and_counted(after)


def test_whoever_changes_what_was_asked_for_is_noticed() -> None:
    before = workload("1", replicas=1)
    assert asked(before) == asked(workload("2", replicas=2))
    assert asked(before) != asked({**before, "spec": {"replicas": 2}})
    going = {**before, "metadata": {**before["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert asked(before) != asked(going)
