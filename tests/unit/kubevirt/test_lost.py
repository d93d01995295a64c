"""When the machine of a node is proven gone, and what its Node is told then. Pure."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from hcp.api.names import MARK_OUT_OF_SERVICE
from hcp.kubevirt import lost

BEFORE, HEARD, AFTER = "2026-01-02T03:00:00Z", "2026-01-02T03:05:00Z", "2026-01-02T03:06:00Z"
WRONG = "2020-01-01T00:00:00Z"
NOW = dt.datetime(2026, 1, 2, 3, 7, tzinfo=dt.UTC)


def node(ready: str = "True", heard: str | None = HEARD, **more: Any) -> dict[str, Any]:
    condition = {
        "type": "Ready",
        "status": ready,
        "lastHeartbeatTime": WRONG if heard else None,
        "lastTransitionTime": BEFORE,
    }
    reports = [{"manager": "kubelet", "subresource": "status", "time": heard}] if heard else []
    others = [{"manager": "kubelet", "time": AFTER}, {"manager": "hcp", "subresource": "status", "time": AFTER}]
    other = {"type": "DiskPressure", "status": "False"}
    made: dict[str, Any] = {
        "metadata": {
            "name": "a",
            "resourceVersion": "7",
            "annotations": more.pop("annotations", {}),
            "managedFields": [*others, *reports],
        },
        "spec": more,
        "status": {"conditions": [other, condition]},
    }
    made["status"][lost.HEARD] = lost.heard(made)
    return made


def instance(made: str = BEFORE, phase: str = "Running", uid: str = "one") -> dict[str, Any]:
    return {"metadata": {"name": "a", "uid": uid, "creationTimestamp": made}, "status": {"phase": phase}}


def pod(uid: str = "one", phase: str = "Running", machine: str = "a") -> dict[str, Any]:
    owner = {"kind": "VirtualMachineInstance", "name": machine, "uid": uid}
    return {"metadata": {"ownerReferences": [owner]}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("found", "pods", "answer"),
    [
        (instance(), [pod()], False),
        (instance(), [], False),
        (None, [], True),
        (None, [pod(machine="b")], True),
        (None, [pod()], False),
        (None, [pod(phase="Failed")], True),
        (None, None, False),
        (instance(phase="Failed"), [pod()], True),
        (instance(phase="Succeeded"), [pod(phase="Succeeded")], True),
        (instance(AFTER, uid="two"), [pod("two")], True),
        (instance(AFTER, uid="two"), [pod("one"), pod("two")], False),
        (instance(AFTER, "Scheduling", "two"), [], True),
    ],
)
@pytest.mark.parametrize("ready", ["True", "False", "Unknown"])
def test_gone_is_what_the_infra_cluster_shows_and_never_silence(
    found: Any, pods: Any, answer: bool, ready: str
) -> None:
    assert lost.gone(node(ready), found, pods) is answer


def test_a_node_that_never_reported_is_not_gone() -> None:
    assert not lost.gone(node(heard=None), None, [])


def test_a_node_is_back_when_it_reports_from_the_instance_that_runs() -> None:
    assert lost.back(node(), instance())
    assert not lost.back(node("Unknown"), instance())
    assert not lost.back(node(), instance(AFTER)), "its last word was that of the former instance"
    assert not lost.back(node(), instance(phase="Scheduled")) and not lost.back(node(), None)


def driver(ready: str, heard: str) -> dict[str, Any]:
    reports = [{"manager": "kubelet", "subresource": "status", "time": heard}]
    others = [{"manager": "kube-controller-manager", "subresource": "status", "time": AFTER}]
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": WRONG}]
    return {"metadata": {"managedFields": [*others, *reports]}, "status": {"conditions": conditions}}


def test_volumes_can_be_mounted_once_the_driver_serves_in_the_instance_that_runs() -> None:
    assert lost.mounts(driver("True", HEARD), instance())
    assert not lost.mounts(driver("False", HEARD), instance())
    assert not lost.mounts(driver("True", HEARD), instance(AFTER)), "that was the former instance"
    assert not lost.mounts({"metadata": {}, "status": {}}, instance())


def test_a_node_whose_driver_does_not_come_is_of_use_without_it() -> None:
    assert lost.patient(instance(HEARD), NOW)
    assert not lost.patient(instance(BEFORE), NOW)


def test_the_taint_is_kubernetes_own_and_taken_back_only_where_we_set_it() -> None:
    mine = {"key": "team", "effect": "NoSchedule"}
    said = lost.taint(node(taints=[mine]), NOW)
    assert said is not None
    assert said["spec"]["taints"] == [mine, {**lost.TAINT, "timeAdded": "2026-01-02T03:07:00Z"}]
    assert said["metadata"]["resourceVersion"] == "7"
    assert lost.taint(node(taints=[lost.TAINT]), NOW) is None
    assert not lost.marked(node(taints=[lost.TAINT])), "a person said so"
    ours = node(taints=[mine, lost.TAINT], annotations={MARK_OUT_OF_SERVICE: "x"})
    assert lost.marked(ours)
    assert lost.untaint(ours)["spec"]["taints"] == [mine]
    assert lost.untaint(ours)["metadata"]["annotations"] == {MARK_OUT_OF_SERVICE: None}


def test_it_is_not_ready_at_once() -> None:
    body = lost.unready(node(), NOW)
    assert body is not None
    other, ready = body["status"]["conditions"]
    assert other == {"type": "DiskPressure", "status": "False"}
    assert (ready["status"], ready["reason"]) == ("Unknown", "MachineGone")
    assert lost.unready(node("Unknown"), NOW) is None
    assert lost.told(node("Unknown", taints=[lost.TAINT])) and not lost.told(node(taints=[lost.TAINT]))


@pytest.mark.parametrize(
    ("volume", "toleration", "answer"),
    [
        ({"persistentVolumeClaim": {"claimName": "data"}}, None, True),
        ({"ephemeral": {}}, None, True),
        ({"emptyDir": {}}, None, False),
        ({"persistentVolumeClaim": {}}, {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, True),
        ({"persistentVolumeClaim": {}}, {"key": lost.TAINT["key"], "operator": "Exists"}, False),
        ({"persistentVolumeClaim": {}}, {"key": lost.TAINT["key"], "value": "nodeshutdown"}, False),
        ({"persistentVolumeClaim": {}}, {"operator": "Exists"}, False),
        ({"persistentVolumeClaim": {}}, {"operator": "Exists", "effect": "NoSchedule"}, True),
    ],
)
def test_pods_with_volumes_are_removed_from_a_lost_node_unless_they_tolerate_it(
    volume: Any, toleration: Any, answer: bool
) -> None:
    spec = {"volumes": [{"name": "data", **volume}], "tolerations": [toleration] if toleration else None}
    assert lost.keeps_a_volume({"spec": spec}) is answer
