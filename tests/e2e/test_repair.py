"""Sick nodes: the VM is restarted, the machine stays; what stays sick is replaced. Each test builds on the last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.e2e.hosted_tools import Guest, with_one_node
from tests.support.e2e.local_tools import Cluster
from tests.support.eventually import eventually_sync

NAME = "repair"
CLUSTER = "sick"
HOSTED = f"clusters-{CLUSTER}"
PREFIX = "hypershift.openshift.io"

pytestmark = pytest.mark.timeout(5400)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_one_node(NAME, CLUSTER, tmp_path_factory.mktemp("repair")) as made:
        yield made


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    return Guest.of(management, CLUSTER)


def patch_pool(management: Cluster, annotations: dict[str, str]) -> None:
    notes = {f"{PREFIX}/{key}": value for key, value in annotations.items()}
    body = {"metadata": {"annotations": notes}, "spec": {"management": {"autoRepair": True}}}
    management.kubectl("patch", "nodepool", CLUSTER, "-n", "clusters", "--type=merge", "-p", json.dumps(body))


def condition(management: Cluster, kind: str) -> dict[str, Any] | None:
    pool = management.get("nodepool", CLUSTER, "-n", "clusters")
    found: dict[str, Any] | None = next((one for one in pool["status"]["conditions"] if one["type"] == kind), None)
    return found


def uid(management: Cluster, kind: str, name: str) -> str:
    found: str = management.get(kind, name, "-n", HOSTED)["metadata"]["uid"]
    return found


def order(management: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = management.get("noderepairtemplate", CLUSTER, "-n", HOSTED)["spec"]["template"]["spec"]
    return found


def test_a_node_whose_kubelet_dies_is_restarted_and_stays_the_same_machine(management: Cluster, guest: Guest) -> None:
    [sick] = guest.ready_nodes()
    patch_pool(management, {"machine-health-check-timeout": "30s", "repair-restart-timeout": "20m"})
    eventually_sync(lambda: uid(management, "machinehealthcheck", CLUSTER), "machines are watched", 120)
    machine, vmi = uid(management, "machine", sick), uid(management, "vmi", sick)
    guest.stop_kubelet(sick)
    eventually_sync(lambda: uid(management, "vmi", sick) != vmi, "its VM is started anew", 900)
    told = condition(management, "NodesUnderRepair")
    assert told is not None
    assert (told["status"], told["reason"]) == ("True", "Restarting")
    assert sick in told["message"]
    eventually_sync(lambda: guest.ready_nodes() == [sick], "the node is ready again", 1200)
    eventually_sync(lambda: condition(management, "NodesUnderRepair") is None, "nothing is done any more", 300)
    assert uid(management, "machine", sick) == machine


def test_a_node_that_stays_sick_after_its_restart_is_replaced(management: Cluster, guest: Guest) -> None:
    [sick] = guest.ready_nodes()
    # One restart was made in this hour already, and is counted.
    patch_pool(management, {"repair-restarts": "2", "repair-restart-timeout": "2m"})
    eventually_sync(lambda: order(management)["restarts"] == 2, "a second restart is allowed", 60)
    vmi = uid(management, "vmi", sick)
    guest.stop_kubelet(sick, forever=True)
    eventually_sync(lambda: uid(management, "vmi", sick) != vmi, "its VM is started anew", 900)

    def replaced() -> bool:
        ready = guest.ready_nodes()
        return len(ready) == 1 and ready != [sick]

    eventually_sync(replaced, "another node instead of the sick one", 1500)
    events = management.get("events", "-n", "clusters", "--field-selector", f"involvedObject.name={CLUSTER}")["items"]
    assert {"RestartingNode", "NodeRecovered", "ReplacingNode"} <= {event["reason"] for event in events}
