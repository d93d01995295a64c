"""What is done about a machine whose infra node is drained."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from hcp.api import conditions as c
from hcp.api.names import LABEL_INFRA_ID, MARK_LEAVES
from hcp.kubevirt import evacuation_plan
from hcp.kubevirt.evacuation_plan import Plan, allowance, leaves, movable, moving, pool_message, replacing

NOW = dt.datetime(2026, 1, 1, 12, 0, 0, tzinfo=dt.UTC)
Object = dict[str, Any]


def instance(migratable: str = "True", **status: Any) -> Object:
    told = {"type": "LiveMigratable", "status": migratable, "reason": "DisksNotLiveMigratable", "message": "local disk"}
    found = {"phase": "Running", "nodeName": "infra-1", "evacuationNodeName": "infra-1", "conditions": [told]}
    metadata = {"name": "vm", "namespace": "infra", "uid": "i1", "creationTimestamp": "2026-01-01T10:00:00Z"}
    metadata["labels"] = {LABEL_INFRA_ID: "id"}  # type: ignore[assignment]
    return {"metadata": metadata, "spec": {"evictionStrategy": "External"}, "status": found | status}


def migration(phase: str, uid: str, ended: str = "12:00:00", made: str = "11:00:00", **more: Any) -> Object:
    times = [{"phase": phase, "phaseTransitionTimestamp": f"2026-01-01T{ended}Z"}]
    metadata = {"name": f"m-{uid}", "uid": uid, "creationTimestamp": f"2026-01-01T{made}Z"}
    status = {"phase": phase, "phaseTransitionTimestamps": times, **more}
    return {"metadata": metadata, "spec": {"vmiName": "vm"}, "status": status}


def machine(name: str, *, healthy: bool = True, marked: bool = False, going: bool = False) -> Object:
    metadata: Object = {"name": name, "uid": f"u-{name}", "annotations": {MARK_LEAVES: "infra-1"} if marked else {}}
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T11:59:00Z"
    return {"metadata": metadata, "status": {"conditions": [{"type": "NodeHealthy", "status": str(healthy)}]}}


def pool(replicas: int = 2, **management: Any) -> Object:
    return {"metadata": {"name": "p"}, "spec": {"replicas": replicas, "management": {"replace": management}}}


def rolling(surge: Any, unavailable: Any) -> Object:
    return {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def replace(machines: list[Object], wanted: Object | None = None) -> Plan:
    return replacing(instance("False"), "local disk", machines[0], wanted or pool(), None, machines)


def test_only_an_instance_on_the_node_that_is_drained_has_to_leave() -> None:
    assert leaves(instance()) == "infra-1"
    assert leaves(None) == ""
    assert leaves(instance(evacuationNodeName="")) == ""
    assert leaves(instance(nodeName="infra-2")) == "", "it has moved"
    assert leaves(instance(phase="Succeeded")) == ""
    going = instance()
    going["metadata"]["deletionTimestamp"] = "x"
    assert leaves(going) == ""
    other = instance()
    other["spec"]["evictionStrategy"] = "LiveMigrate"
    assert leaves(other) == "", "KubeVirt moves it by itself"


def test_kubevirt_says_whether_it_can_move_and_why_not() -> None:
    assert movable(instance()) == (True, "")
    assert movable(instance("False")) == (False, "local disk")
    assert movable(instance("Unknown"))[0] is None
    assert movable(instance(conditions=[]))[0] is None
    assert movable(instance(phase="Scheduled"))[0] is None


def test_a_machine_that_can_move_is_moved_and_who_asks_twice_asks_for_the_same() -> None:
    found = moving(instance(), [], NOW)
    assert found.reason == c.MIGRATING
    assert found.make is not None
    assert found.make["spec"] == {"vmiName": "vm"}
    assert found.make["metadata"]["namespace"] == "infra"
    assert found.make["metadata"]["ownerReferences"][0]["uid"] == "i1"
    assert moving(instance(), [], NOW) == found
    others = [{**migration("Running", "x"), "spec": {"vmiName": "another"}}]
    assert moving(instance(), others, NOW) == found


def test_while_it_moves_nothing_more_is_asked_and_it_is_said_how_far_it_is() -> None:
    state = {"migrationUid": "a", "targetNode": "infra-2"}
    found = moving(instance(migrationState=state), [migration("Running", "a")], NOW)
    assert (found.reason, found.make) == (c.MIGRATING, None)
    assert "infra node infra-1" in found.message and "Running to infra node infra-2" in found.message
    rejected = {"type": "x", "status": "True", "message": "exceeds quota"}
    held_up = moving(instance(), [migration("Pending", "a", conditions=[rejected])], NOW)
    assert held_up.message.endswith("Pending: exceeds quota")


@pytest.mark.parametrize(("failures", "seconds"), [(1, 30), (2, 60), (3, 120), (5, 480)])
def test_a_move_that_failed_is_tried_again_later_and_later(failures: int, seconds: int) -> None:
    known = [migration("Failed", f"f{n}", made=f"11:0{n}:00") for n in range(failures)]
    until = NOW + dt.timedelta(seconds=seconds)
    state = {"migrationUid": f"f{failures - 1}", "failureReason": "no route"}
    waits = moving(instance(migrationState=state), known, until - dt.timedelta(seconds=1))
    assert (waits.reason, waits.until, waits.make) == (c.MIGRATION_FAILED, until, None)
    assert "no route" in waits.message
    again = moving(instance(), known, until)
    assert again.make is not None
    names = {again.make["metadata"]["name"], moving(instance(), [], NOW).make["metadata"]["name"]}  # type: ignore[index]
    assert len(names) == 2, "another try has another name"


def test_the_pause_between_tries_has_an_end_and_a_success_begins_anew() -> None:
    many = [migration("Failed", f"f{n}", made=f"11:0{n}:00") for n in range(9)]
    assert moving(instance(), many, NOW).until == NOW + dt.timedelta(minutes=10)
    earlier = [migration("Failed", "a", made="11:00:00"), migration("Succeeded", "b", "11:30:00", "11:20:00")]
    assert moving(instance(), earlier, NOW).make is not None, "an older move was another drain's"
    just = [migration("Succeeded", "b", "11:59:30", "11:59:00")]
    settling = moving(instance(), just, NOW)
    assert (settling.make, settling.until) == (None, NOW + dt.timedelta(seconds=30))


def test_a_machine_that_cannot_move_is_replaced_after_a_new_one_came() -> None:
    first = replace([machine("vm"), machine("b")])
    assert (first.reason, first.mark, first.delete) == (c.REPLACING, True, False)
    assert "cannot move while it runs (local disk)" in first.message
    waits = replace([machine("vm", marked=True), machine("b"), machine("new", healthy=False)])
    assert (waits.mark, waits.delete) == (False, False)
    assert "1 of 2 nodes" in waits.message
    assert replace([machine("vm", marked=True), machine("b"), machine("new")]).delete
    drained = machine("vm", marked=True, going=True)
    why = {"type": "DrainingSucceeded", "status": "False", "message": "pod web: budget"}
    drained["status"]["conditions"].append(why)
    last = replace([drained, machine("b"), machine("new")])
    assert (last.mark, last.delete) == (False, False)
    assert last.message.endswith("pod web: budget")


def test_machines_of_one_pool_leave_one_after_the_other_as_its_strategy_says() -> None:
    both = [machine("vm"), machine("b", marked=True)]
    found = replace(both)
    assert (found.reason, found.mark, found.delete) == (c.WAITING_FOR_TURN, False, False)
    assert "after b" in found.message
    assert replace([machine("vm"), machine("b", going=True)]).reason == c.WAITING_FOR_TURN
    assert replace(both, pool(2, **rolling(2, 0))).mark


def test_where_a_machine_may_be_missing_it_goes_at_once_and_not_while_another_one_is_missing() -> None:
    spare = pool(2, **rolling(0, 1))
    assert replace([machine("vm"), machine("b")], spare).delete
    waits = replace([machine("vm"), machine("b", healthy=False)], spare)
    assert (waits.reason, waits.mark, waits.delete) == (c.WAITING_FOR_TURN, False, False)
    assert "0 of 1 nodes" in waits.message


def test_what_a_pool_allows() -> None:
    assert allowance(pool(3), None) == (3, 1, 0)
    assert allowance(pool(3, strategy="OnDelete"), None) == (3, 1, 0)
    assert allowance(pool(10, **rolling("25%", "25%")), None) == (10, 3, 2)
    assert allowance(pool(2, **rolling(0, "10%")), None) == (2, 0, 1), "something has to give way"
    scaled = {"spec": {"autoScaling": {"min": 1, "max": 5}}}
    assert allowance(scaled, {"spec": {"replicas": 4}}) == (4, 0, 1)


def test_marks_make_a_pool_larger_only_while_their_machines_are_there() -> None:
    machines = [machine("a", marked=True), machine("b", marked=True, going=True), machine("c")]
    assert evacuation_plan.beyond(machines) == 1
    body = evacuation_plan.mark(instance(), machine("a"))
    assert body["metadata"]["annotations"] == {MARK_LEAVES: "infra-1", evacuation_plan.FIRST_TO_GO: ""}
    undone = evacuation_plan.unmark(machines[0])
    assert undone is not None and set(undone["metadata"]["annotations"].values()) == {None}
    assert evacuation_plan.unmark(machines[1]) is None, "it goes anyway"
    assert evacuation_plan.unmark(machines[2]) is None


def test_a_pool_tells_of_each_machine() -> None:
    plans = {"b": Plan(c.REPLACING, "goes"), "a": Plan(c.MIGRATING, "moves")}
    assert pool_message(plans) == ("MigratingAndReplacing", "Node a moves\nNode b goes")
    assert pool_message({}) == ("", "")
    assert pool_message({str(n): Plan(c.MIGRATING, "moves") for n in range(25)})[1].endswith("... and 5 more")
