"""The stages between awake and asleep."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from hcp.hostedcluster import hibernation
from hcp.hostedcluster.hibernation import Sleep
from hcp.hostedcluster.phases import PHASES, SLEEPING
from hcp.kubevirt.sleep_plan import Machines
from hcp.runtime.hibernation import Wish

DOWN, UP = Wish(asleep=True), Wish()
STOPPED, BACK = Machines(stopped=True), Machines(back=True)


@pytest.mark.parametrize(
    ("sleep", "available", "after"),
    [
        (Sleep(UP), True, ""),
        (Sleep(DOWN), True, "FallingAsleep"),
        (Sleep(DOWN, "Awake"), True, "FallingAsleep"),
        (Sleep(DOWN, "WakingUp", BACK), True, "FallingAsleep"),
        (Sleep(DOWN, "FallingAsleep", Machines(), left=("etcd",)), False, "FallingAsleep"),
        (Sleep(DOWN, "FallingAsleep", STOPPED, left=("etcd",)), False, "FallingAsleep"),
        (Sleep(DOWN, "FallingAsleep", STOPPED), False, "Asleep"),
        (Sleep(DOWN, "Asleep"), False, "Asleep"),
        (Sleep(UP, "Asleep", STOPPED), False, "WakingUp"),
        (Sleep(UP, "FallingAsleep"), True, "WakingUp"),
        (Sleep(UP, "WakingUp", Machines()), True, "WakingUp"),
        (Sleep(UP, "WakingUp", None), True, "WakingUp"),
        (Sleep(UP, "WakingUp", BACK), False, "WakingUp"),
        (Sleep(UP, "WakingUp", BACK), True, "Awake"),
        (Sleep(UP, "Awake"), False, "Awake"),
    ],
)
def test_the_next_stage(sleep: Sleep, available: bool, after: str) -> None:
    assert hibernation.following(sleep, available=available) == after


def workload(replicas: int, running: int = 0, seen: int = 1) -> dict[str, Any]:
    return {
        "metadata": {"name": "etcd", "generation": 1},
        "spec": {"replicas": replicas},
        "status": {"observedGeneration": seen, "replicas": running},
    }


def test_the_control_plane_ends_after_the_machines_and_stays_ended_in_a_new_process() -> None:
    falling = Sleep(DOWN, "FallingAsleep")
    assert not falling.empty([workload(1, 1)])
    assert not replace(falling, machines=Machines(waiting="machines shut down: a")).empty([workload(1, 1)])
    assert replace(falling, machines=STOPPED).empty([workload(1, 1)])
    assert falling.empty([workload(0)]), "nobody has looked at machines yet, but it was so far before"
    assert Sleep(DOWN, "Asleep").empty([])
    assert not Sleep(UP, "Asleep", STOPPED).empty([workload(0)])
    assert not Sleep(DOWN, "Awake", STOPPED).empty([]), "the stage is written down before anything is done"


def test_what_has_not_said_that_it_ended_runs() -> None:
    assert hibernation.running([workload(0, 0)]) == ()
    assert hibernation.running([workload(0, 1)]) == ("etcd",)
    assert hibernation.running([workload(0, 0, seen=0)]) == ("etcd",)
    assert hibernation.running([workload(1, 0)]) == ("etcd",)


def test_the_owner_is_told_how_to_wake_it() -> None:
    sleep = Sleep(DOWN, "Asleep", STOPPED, command="hcp wake demo -n clusters")
    assert hibernation.verdict(sleep, "Asleep")[0] is True
    assert hibernation.said(sleep, "Asleep")["Available"][:2] == (False, "Hibernating")
    assert hibernation.said(sleep, "Asleep")["Available"][2].endswith("Wake it with: hcp wake demo -n clusters")
    planned = replace(sleep, wish=Wish(True, dt.datetime(2026, 3, 12, 7, tzinfo=dt.UTC)))
    assert "by itself at 2026-03-12T07:00:00Z, or with: hcp wake" in hibernation.verdict(planned, "Asleep")[2]
    called = replace(sleep, on_request=True)
    assert "It wakes with the first request to its API, or with: hcp wake" in hibernation.verdict(called, "Asleep")[2]
    both = replace(planned, on_request=True)
    assert "07:00:00Z, with the first request to its API, or with: hcp" in hibernation.verdict(both, "Asleep")[2]
    awake = Sleep(Wish(called=True), "WakingUp", Machines(waiting="nodes report: a"))
    assert hibernation.verdict(awake, "WakingUp")[2].endswith("up after a request to its API: nodes report: a")
    down = Sleep(DOWN, "FallingAsleep", Machines(waiting="machines shut down: a"))
    assert hibernation.verdict(down, "FallingAsleep") == (
        False,
        "FallingAsleep",
        "The cluster falls asleep: machines shut down: a",
    )


def test_whoever_makes_pods_has_none_made_while_a_cluster_sleeps() -> None:
    makers = {"etcd", "controllers", "kube-apiserver", "login", "catalogs", "storage", "autoscaling"}
    assert makers <= set(PHASES.names) & set(SLEEPING.names)
    assert SLEEPING.names[-1] == "asleep", "what is left is counted at the end"
