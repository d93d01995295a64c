"""Machines that are put to sleep, and which of them have come back."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hcp.api.names import MARK_ASLEEP
from hcp.kubevirt import sleep_plan

NOW = dt.datetime(2026, 3, 11, 7, 5, tzinfo=dt.UTC)
SINCE = NOW - dt.timedelta(minutes=1)


def machine(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", **metadata}, "spec": {"runStrategy": "Always"}}


def instance(created: str) -> dict[str, Any]:
    return {"metadata": {"name": "a", "creationTimestamp": created}, "status": {"phase": "Running"}}


def node(heard: str, ready: str = "True") -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "status": {"heard": heard, "conditions": [{"type": "Ready", "status": ready}]}}


def test_a_machine_sleeps_and_wakes_with_what_it_had() -> None:
    body = sleep_plan.put_to_sleep(machine())
    assert body == {"metadata": {"annotations": {MARK_ASLEEP: "Always"}}, "spec": {"runStrategy": "Manual"}}
    asleep = machine(annotations={MARK_ASLEEP: "RerunOnFailure"})
    assert sleep_plan.put_to_sleep(asleep) is None
    assert sleep_plan.wake(asleep) == {
        "metadata": {"annotations": {MARK_ASLEEP: None}},
        "spec": {"runStrategy": "RerunOnFailure"},
    }
    assert sleep_plan.wake(machine()) is None, "nobody starts what somebody else has stopped"
    assert sleep_plan.put_to_sleep(machine(deletionTimestamp="2026-01-01T00:00:00Z")) is None


def test_a_node_is_back_when_it_reports_from_the_instance_that_runs_now() -> None:
    new = {"a": instance("2026-03-11T07:04:30Z")}
    old_report, fresh = node("2026-03-10T19:00:00Z"), node("2026-03-11T07:04:50Z")
    state, until = sleep_plan.waking([machine()], new, {"a": old_report}, SINCE, NOW)
    assert not state.back
    assert "a" in state.waiting
    assert until == dt.datetime(2026, 3, 11, 7, 14, 30, tzinfo=dt.UTC)
    assert not sleep_plan.waking([machine()], new, {"a": node("2026-03-11T07:04:50Z", "False")}, SINCE, NOW)[0].back
    assert sleep_plan.waking([machine()], new, {"a": fresh}, SINCE, NOW) == (sleep_plan.Machines(back=True), None)
    assert not sleep_plan.waking([machine()], {}, {"a": fresh}, SINCE, NOW)[0].back, "its machine has not started yet"
    assert sleep_plan.waking([], {}, {}, SINCE, NOW)[0].back


def test_the_patience_with_a_node_ends() -> None:
    long_ago = {"a": instance("2026-03-11T06:50:00Z")}
    assert sleep_plan.waking([machine()], long_ago, {}, SINCE, NOW)[0].back
    assert sleep_plan.waking([machine()], {}, {}, NOW - dt.timedelta(minutes=11), NOW)[0].back


def test_machines_are_stopped_when_no_instance_is_left() -> None:
    assert sleep_plan.stopping([]).stopped
    assert sleep_plan.stopping([instance("2026-03-11T06:50:00Z")]).waiting == "machines shut down: a"
