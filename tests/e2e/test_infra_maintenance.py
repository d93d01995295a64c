"""Infra nodes that are drained, on two embedded ones: machines are replaced, or moved. Each test builds on the last."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.e2e.hosted_tools import Guest, create, kept, leave, with_operator
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync

NAME = "drains"
CLUSTER = "moves"
HOSTED = f"clusters-{CLUSTER}"
EVACUATION = "hypershift.openshift.io/kubevirt-evacuation"
# Counts in its log, and says when it is asked to go: whoever is ended without that was not drained.
COUNTS = "trap 'echo told; exit 0' TERM; n=0; while :; do n=$((n+1)); echo $n; sleep 1 & wait $!; done"

pytestmark = pytest.mark.timeout(7200)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_operator(NAME, tmp_path_factory.mktemp("drains"), "--nodes", "2") as made:
        try:
            if not kept(made, CLUSTER):
                shared = ("--root-volume-access-modes", "ReadWriteMany")
                create(made, CLUSTER, 1, *shared, "--wait", "--timeout", "40m")
            yield made
        finally:
            leave(made, CLUSTER)


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    return Guest.of(management, CLUSTER)


@pytest.fixture
def drain(management: Cluster) -> Iterator[Any]:
    """Drains an infra node beside the test, and gives it back afterwards."""
    begun: list[tuple[str, subprocess.Popen[bytes]]] = []

    def begin(node: str) -> subprocess.Popen[bytes]:
        flags = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=60m")
        chosen = ("--pod-selector=kubevirt.io=virt-launcher",)
        command = [str(management.kubectl_binary), f"--kubeconfig={management.kubeconfig}", "drain", node]
        process = subprocess.Popen([*command, *flags, *chosen], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begun.append((node, process))
        return process

    yield begin
    for node, process in begun:
        process.kill()
        process.wait()
        management.kubectl("uncordon", node)


def instance(management: Cluster, name: str) -> dict[str, Any]:
    found: dict[str, Any] = management.get("vmi", name, "-n", HOSTED)
    return found


def leaving(management: Cluster) -> dict[str, Any] | None:
    pool = management.get("nodepool", CLUSTER, "-n", "clusters")
    told = pool["status"]["conditions"]
    return next((one for one in told if one["type"] == "NodesUnderEvacuation"), None)


def reasons(management: Cluster) -> set[str]:
    events = management.get("events", "-n", "clusters", "--field-selector", f"involvedObject.name={CLUSTER}")["items"]
    return {event["reason"] for event in events}


def run_counter(guest: Guest) -> None:
    """One pod that counts, which moves from node to node only by being evicted, and a budget that lets it go."""
    labels = {"app": "counter"}
    container = {"name": "counter", "image": guest.image(), "command": ["sh", "-c", COUNTS]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "counter"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    guest.kubectl("apply", "-f", "-", stdin=json.dumps(deployment))
    eventually_sync(lambda: counter(guest)["status"]["phase"] == "Running", "it counts", 600)


def counter(guest: Guest) -> dict[str, Any]:
    pods = guest.get("pods", "-l", "app=counter")["items"]
    found: dict[str, Any] = next(one for one in pods if not one["metadata"].get("deletionTimestamp"))
    return found


def test_a_machine_that_would_lose_its_address_is_drained_and_goes_after_a_new_one_came(
    management: Cluster, guest: Guest, drain: Any
) -> None:
    [old] = guest.ready_nodes()
    run_counter(guest)
    pod = counter(guest)["metadata"]["name"]
    process = drain(instance(management, old)["status"]["nodeName"])

    def told() -> bool:
        found = leaving(management)
        return found is not None and "its address would not follow it" in found["message"]

    eventually_sync(told, "the pool says what is done", 300)
    words = hcp("doctor", "--kubeconfig", str(management.kubeconfig), check=False).stdout
    assert f"clusters/{CLUSTER}: Node {old}" in words
    least: list[int] = []

    def replaced() -> bool:
        ready = guest.ready_nodes()
        least.append(len(ready))
        return len(ready) == 1 and ready != [old]

    eventually_sync(replaced, "another node instead of the old one", 2400)
    assert min(least) >= 1, "there was a ready node all the while"
    assert counter(guest)["metadata"]["name"] != pod
    killed = guest.get("events", "--field-selector", f"involvedObject.name={pod},reason=Killing")["items"]
    assert killed, "its pod was asked to go before its machine went"
    assert process.wait(600) == 0, "and the infra node is empty"
    eventually_sync(lambda: leaving(management) is None, "nothing has to leave any more", 300)
    assert "ReplacingNode" in reasons(management)


def test_a_machine_whose_owner_says_so_is_moved_while_it_runs(management: Cluster, guest: Guest, drain: Any) -> None:
    [name] = guest.ready_nodes()
    management.kubectl("annotate", "nodepool", CLUSTER, "-n", "clusters", f"{EVACUATION}=Move")
    before = instance(management, name)
    machine = management.get("machine", name, "-n", HOSTED)["metadata"]["uid"]
    process = drain(before["status"]["nodeName"])

    def moved() -> bool:
        found = instance(management, name)
        same = found["metadata"]["uid"] == before["metadata"]["uid"]
        return bool(same and found["status"]["nodeName"] != before["status"]["nodeName"])

    eventually_sync(moved, "the same instance runs on the other node", 1800)
    assert process.wait(600) == 0, "and the infra node is empty"
    eventually_sync(lambda: leaving(management) is None, "nothing has to leave any more", 300)
    assert {"MigratingNode", "NodeMigrated"} <= reasons(management)
    assert management.get("machine", name, "-n", HOSTED)["metadata"]["uid"] == machine
