"""What is done about a sick node."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hcp.api.names import ANNOTATION_RESTARTED
from hcp.kubevirt.repair_plan import Plan, decide, held, pool_message, restarts_of

NOW = dt.datetime(2026, 1, 1, 12, 0, 0, tzinfo=dt.UTC)
Object = dict[str, Any]


def request(uid: str = "r1", **policy: Any) -> Object:
    spec = {"restarts": 1, "restartTimeout": "10m", "within": "1h", **policy}
    return {"metadata": {"name": "vm", "uid": uid}, "spec": spec}


def machine(restarted: str = "", **status: Any) -> Object:
    annotations = {ANNOTATION_RESTARTED: restarted} if restarted else {}
    found = {"nodeRef": {"name": "vm"}, **status}
    return {"metadata": {"name": "vm", "uid": "m", "annotations": annotations}, "status": found}


def node(ready: str = "Unknown", **spec: Any) -> Object:
    return {"metadata": {"name": "vm"}, "spec": spec, "status": {"conditions": [{"type": "Ready", "status": ready}]}}


def instance(uid: str = "i1", **metadata: Any) -> Object:
    return {"metadata": {"name": "vm", "uid": uid, **metadata}}


def plan(restarted: str = "", at: dt.datetime = NOW, vmi: Object | None = None, **policy: Any) -> Plan:
    return decide(request(**policy), machine(restarted), node(), vmi or instance(), at)


def test_first_the_virtual_machine_is_restarted_and_that_is_remembered() -> None:
    found = plan()
    assert (found.phase, found.end, found.replace) == ("Restarting", "i1", False)
    assert found.remember == "2026-01-01T12:00:00Z/i1/r1"
    assert found.until == NOW + dt.timedelta(minutes=10)
    assert "1 of 1" in found.message
    assert "2026-01-01T12:10:00Z" in found.message


def test_a_restart_that_was_noted_but_not_made_is_made_once() -> None:
    noted = "2026-01-01T12:00:00Z/i1/r1"
    again = plan(noted, NOW + dt.timedelta(minutes=1))
    assert (again.end, again.remember) == ("i1", "")
    ending = plan(noted, vmi=instance(deletionTimestamp="2026-01-01T12:00:00Z"))
    assert (ending.phase, ending.end) == ("Restarting", "")
    new = plan(noted, vmi=instance("i2"))
    assert (new.phase, new.end, new.remember) == ("Restarting", "", "")


def test_while_there_is_time_it_is_waited_for_the_node_also_without_an_instance() -> None:
    noted = machine("2026-01-01T12:00:00Z/i1/r1")
    found = decide(request(), noted, node(), None, NOW + dt.timedelta(minutes=9))
    assert (found.phase, found.end, found.replace) == ("Restarting", "", False)


def test_a_machine_that_stays_sick_is_replaced() -> None:
    found = plan("2026-01-01T12:00:00Z/i1/r1", NOW + dt.timedelta(minutes=10), instance("i2"))
    assert (found.phase, found.replace, found.end) == ("Replacing", True, "")
    assert "1 of 1" in found.message


def test_more_restarts_are_made_where_the_pool_allows_them() -> None:
    found = plan("2026-01-01T12:00:00Z/i1/r1", NOW + dt.timedelta(minutes=10), instance("i2"), restarts=2)
    assert (found.phase, found.end) == ("Restarting", "i2")
    assert found.remember == "2026-01-01T12:00:00Z/i1/r1,2026-01-01T12:10:00Z/i2/r1"


def test_a_machine_that_is_sick_again_soon_is_replaced_and_later_restarted() -> None:
    before = "2026-01-01T11:30:00Z/i0/r0"
    assert plan(before).replace
    later = plan(before, NOW + dt.timedelta(hours=1))
    assert later.end == "i1"
    assert later.remember == "2026-01-01T13:00:00Z/i1/r1", "what is not counted any more is forgotten"


def test_without_restarts_machines_are_replaced_at_once() -> None:
    found = plan(restarts=0)
    assert found.replace
    assert "no restart is allowed" in found.message


def test_what_a_restart_cannot_heal_is_replaced() -> None:
    never = machine()
    del never["status"]["nodeRef"]
    marked = machine()
    marked["metadata"]["annotations"]["cluster.x-k8s.io/remediate-machine"] = ""
    cases = [
        (decide(request(), never, None, instance(), NOW), "never became a node"),
        (decide(request(), machine(), None, instance(), NOW), "Node was deleted"),
        (decide(request(), machine(failureMessage="no disk"), node(), instance(), NOW), "no disk"),
        (decide(request(), machine(), node(), None, NOW), "no virtual machine runs"),
        (decide(request(), marked, node("True"), instance(), NOW), "remediate-machine"),
    ]
    for found, words in cases:
        assert found.replace, words
        assert words in found.message


def test_a_node_that_is_ready_again_is_left_alone() -> None:
    found = decide(request(), machine("2026-01-01T11:00:00Z/i1/r1"), node("True"), instance(), NOW)
    assert found == Plan("Recovered", "the node is Ready again")


def test_what_somebody_works_on_is_not_touched() -> None:
    assert held(machine(), node(), False, None) == ""
    assert "paused" in held(machine(), node(), True, None)
    assert "cordoned" in held(machine(), node(unschedulable=True), False, None)
    for key in ("cluster.x-k8s.io/skip-remediation", "cluster.x-k8s.io/paused"):
        spared = machine()
        spared["metadata"]["annotations"][key] = ""
        assert key in held(spared, node(), False, None)


def test_nothing_is_done_while_too_many_are_sick() -> None:
    told = {"type": "RemediationAllowed", "status": "False", "message": "exceeds maxUnhealthy"}
    assert held(machine(), node(), False, {"status": {"conditions": [told]}}) == "exceeds maxUnhealthy"
    fine = {"type": "RemediationAllowed", "status": "True"}
    assert held(machine(), node(), False, {"status": {"conditions": [fine]}}) == ""


def test_notes_that_cannot_be_read_are_left_out() -> None:
    assert restarts_of(machine("x,2026-01-01T12:00:00/i/r,,2026-01-01T12:00:00Z/i/r")) == [
        *restarts_of(machine("2026-01-01T12:00:00Z/i/r"))
    ]
    assert len(restarts_of(machine("2026-01-01T12:00:00Z/i/r"))) == 1


def test_a_pool_says_which_remedy_is_under_way_for_which_node() -> None:
    def repair(name: str, phase: str, message: str) -> Object:
        return {"metadata": {"name": name}, "status": {"phase": phase, "message": message}}

    assert pool_message([]) == ("", "")
    assert pool_message([{"metadata": {"name": "new"}}, repair("c", "Recovered", "")]) == ("", "")
    found = pool_message([repair("b", "Restarting", "was restarted"), repair("a", "Held", "it is cordoned")])
    assert found == ("HeldAndRestarting", "Node a: it is cordoned\nNode b: was restarted")
