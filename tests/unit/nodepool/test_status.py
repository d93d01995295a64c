"""The status of a NodePool as a pure function of what a pass has seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hcp.api import conditions as c
from hcp.nodepool import status
from hcp.nodepool.observed import Machines, Observed, OwnMachines
from hcp.operator.controllers import NODE_POOL_CONDITIONS
from hcp.runtime.conditions import condition_of
from hcp.runtime.reconcile import status_patch

NOW, LATER = "2026-01-01T00:00:10Z", "2026-01-01T00:01:00Z"


def pool(**before: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"metadata": {"name": "pool", "namespace": "clusters", "generation": 3}, "spec": {}}
    return {**made, "status": before} if before else made


def condition(kind: str, value: str, message: str = "") -> dict[str, str]:
    return {"type": kind, "status": value, "reason": "Because", "message": message}


def machine(name: str, **conditions: str) -> dict[str, Any]:
    told = [condition(kind, value) for kind, value in conditions.items()]
    info = {"nodeInfo": {"kubeletVersion": "v1.36.3"}}
    notes = {"hypershift.openshift.io/release-version": "1.36.3"}
    return {"metadata": {"name": name, "annotations": notes}, "status": {"conditions": told, **info}}


WELL = machine("a", Ready="True", NodeHealthy="True")
READY = {"status": {"availableReplicas": 1, "conditions": [condition("Ready", "True")]}}


def verdict(result: dict[str, Any], kind: str) -> tuple[str, str]:
    found = condition_of({"status": result}, kind)
    assert found is not None, kind
    return found["status"], found["reason"]


def test_equal_facts_change_nothing() -> None:
    seen = Observed(said={c.VALID_RELEASE_IMAGE: (True, c.AS_EXPECTED, "")}, machines=Machines([WELL], (), READY))
    before = pool()
    before["status"] = status.compute(before, seen, NOW)
    assert status_patch(before["status"], status.compute(before, seen, LATER)) is None


def test_a_phase_that_failed_is_named() -> None:
    result = status.compute(pool(), Observed(errors={"boot-image": "No disk. Buy one."}), NOW)
    assert verdict(result, c.RECONCILIATION_SUCCEEDED) == ("False", c.RECONCILIATION_ERROR)
    told = condition_of({"status": result}, c.RECONCILIATION_SUCCEEDED) or {}
    assert told["message"] == "boot-image: No disk. Buy one."


def test_machines_decide_about_the_pool() -> None:
    sick = machine("b", Ready="False", NodeHealthy="False")
    result = status.compute(pool(), Observed(machines=Machines([WELL, sick], (), READY)), NOW)
    assert verdict(result, c.READY)[0] == "True"
    assert verdict(result, c.ALL_MACHINES_READY)[0] == "False"
    assert result["replicas"] == 1
    counted = result["nodesInfo"]["nodeVersions"][0]
    assert (counted["readyNodeCount"], counted["unreadyNodeCount"]) == (1, 1)


def test_too_many_sick_machines_are_said_where_people_look_first() -> None:
    check = {"status": {"conditions": [condition("RemediationAllowed", "False", "too many")]}}
    result = status.compute(pool(), Observed(machines=Machines([WELL], (), READY, check)), NOW)
    assert verdict(result, c.READY) == ("False", "Because")


def test_without_machines_there_is_no_pool() -> None:
    result = status.compute(pool(), Observed(machines=Machines()), NOW)
    assert verdict(result, c.READY) == ("False", c.NOT_FOUND)
    assert verdict(result, c.ALL_MACHINES_READY) == ("False", c.NOT_FOUND)


def test_what_was_not_looked_at_stays() -> None:
    known = pool(replicas=3, version="1.36.3", conditions=[condition(c.READY, "True")])
    result = status.compute(known, Observed(), NOW)
    assert (result["replicas"], result["version"]) == (3, "1.36.3")
    assert verdict(result, c.READY) == ("True", "Because")


def test_what_deleting_needs_is_kept_and_joined() -> None:
    known = pool(platform={"kubeVirt": {"cacheName": "old"}})
    result = status.compute(known, Observed(credentials={"infraNamespace": "vms"}, cache_name="new"), NOW)
    assert result["platform"]["kubeVirt"] == {"cacheName": "new", "credentials": {"infraNamespace": "vms"}}


def test_a_condition_that_means_nothing_any_more_goes() -> None:
    known = pool(conditions=[condition(c.IGNITION_ENDPOINT_AVAILABLE, "False")])
    result = status.compute(known, Observed(said={c.IGNITION_ENDPOINT_AVAILABLE: None}), NOW)
    assert condition_of({"status": result}, c.IGNITION_ENDPOINT_AVAILABLE) is None


def test_nodes_of_machines_of_the_users_own_are_counted() -> None:
    node = {
        "metadata": {"name": "mine", "labels": {"hypershift.openshift.io/nodePool": "pool"}},
        "status": {"conditions": [condition("Ready", "True")], "nodeInfo": {"kubeletVersion": "v1.36.3"}},
    }
    own = OwnMachines([node], expected=1, served=True)
    result = status.compute(pool(), Observed(machines=own), NOW)
    assert verdict(result, c.READY)[0] == "True" and result["replicas"] == 1
    early = status.compute(pool(), Observed(machines=replace(own, served=False)), NOW)
    assert verdict(early, c.READY) == ("False", c.NOT_FOUND)


def test_only_what_its_controller_owns_is_set() -> None:
    result = status.compute(pool(), Observed(machines=Machines([WELL], (), READY)), NOW)
    assert {x["type"] for x in result["conditions"]} <= set(NODE_POOL_CONDITIONS)
