"""One answer to whether a workload is there, for every kind of it."""

from __future__ import annotations

from typing import Any

import pytest

from hcp.runtime import workloads

AVAILABLE = [{"type": "Available", "status": "True"}]


def deployment(wanted: int | None = 1, **status: Any) -> dict[str, Any]:
    spec = {} if wanted is None else {"replicas": wanted}
    return {"kind": "Deployment", "metadata": {"generation": 2}, "spec": spec, "status": status}


def daemon_set(**status: Any) -> dict[str, Any]:
    return {"kind": "DaemonSet", "metadata": {"generation": 1}, "spec": {}, "status": status}


COMPLETE = {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}


def test_a_deployment_without_a_pod_is_not_there_whatever_its_condition_says() -> None:
    empty = deployment(observedGeneration=2, conditions=AVAILABLE)
    assert not workloads.all_available(empty)
    assert not workloads.serving(empty)
    assert not workloads.rolled_out(empty)


@pytest.mark.parametrize(
    ("workload", "complete"),
    [
        (deployment(**COMPLETE), True),
        (deployment(None, **COMPLETE), True),
        (deployment(2, **COMPLETE), False),
        (deployment(0, observedGeneration=2), True),
        (deployment(**{**COMPLETE, "observedGeneration": 1}), False),
        (deployment(**{**COMPLETE, "replicas": 2}), False),
        (deployment(**{**COMPLETE, "availableReplicas": 0}), False),
        (daemon_set(observedGeneration=1), False),
        (daemon_set(observedGeneration=1, desiredNumberScheduled=2, numberAvailable=2, updatedNumberScheduled=2), True),
        (
            daemon_set(observedGeneration=1, desiredNumberScheduled=2, numberAvailable=2, updatedNumberScheduled=1),
            False,
        ),
        (
            daemon_set(observedGeneration=1, desiredNumberScheduled=2, numberAvailable=1, updatedNumberScheduled=2),
            False,
        ),
        (None, False),
    ],
)
def test_a_roll_out_is_complete_when_every_pod_is_new_and_available(
    workload: dict[str, Any] | None, complete: bool
) -> None:
    assert workloads.rolled_out(workload) is complete


def test_two_of_three_replicas_answer() -> None:
    two = deployment(3, observedGeneration=2, replicas=3, availableReplicas=2, conditions=AVAILABLE)
    assert workloads.serving(two)
    assert not workloads.all_available(two)


def test_a_deployment_without_replicas_serves_nobody() -> None:
    """Its condition Available is True all the same."""
    said = {"observedGeneration": 1, "conditions": [{"type": "Available", "status": "True"}]}
    asleep = {"kind": "Deployment", "metadata": {"generation": 1}, "spec": {"replicas": 0}, "status": said}
    assert not workloads.serving(asleep)
