"""A hosted cluster with a machine sleeps and wakes: the same machine and node, what it stored. Each test builds on the
last."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.support.e2e.control_planes import condition
from tests.support.e2e.hosted_tools import Guest, with_one_node
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync

NAME = "hibernate"
CLUSTER = "sleeper"
HOSTED = f"clusters-{CLUSTER}"

pytestmark = pytest.mark.timeout(5400)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_one_node(NAME, CLUSTER, tmp_path_factory.mktemp("hibernate")) as made:
        yield made


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    return Guest.of(management, CLUSTER)


def asked(management: Cluster, *words: str) -> str:
    return hcp(*words, f"--kubeconfig={management.kubeconfig}").stdout


def stage(management: Cluster) -> str:
    return str(condition(management, CLUSTER, "Hibernating").get("reason", ""))


def versions(management: Cluster) -> dict[str, str]:
    """What would be another one after any write."""
    kinds = "deployments,statefulsets,secrets,configmaps,machines,kubevirtmachines,virtualmachines,hostedcontrolplanes"
    items = management.get(kinds, "-n", HOSTED)["items"]
    own = management.get("hostedclusters,nodepools", "-n", "clusters")["items"]
    return {f"{one['kind']}/{one['metadata']['name']}": one["metadata"]["resourceVersion"] for one in [*items, *own]}


def test_it_sleeps_without_a_pod_and_without_a_write(management: Cluster, guest: Guest) -> None:
    [node] = guest.ready_nodes()
    guest.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    asked(management, "hibernate", CLUSTER, "--wait", "--timeout", "20m")
    assert stage(management) == "Asleep"
    assert management.get("vmi", "-n", HOSTED)["items"] == []
    eventually_sync(lambda: management.get("pods", "-n", HOSTED)["items"] == [], "no pod is left", 300)
    assert management.get("vm", node, "-n", HOSTED)["spec"]["runStrategy"] == "Manual"
    time.sleep(30)  # KubeVirt and Kubernetes write down what has ended
    before = versions(management)
    time.sleep(90)  # longer than anything that looks again does
    assert versions(management) == before
    assert "The cluster sleeps" in asked(management, "get", "clusters")


def test_it_wakes_with_the_machine_and_the_data_it_had(management: Cluster, guest: Guest) -> None:
    [machine] = management.get("machine", "-n", HOSTED)["items"]
    asked(management, "wake", CLUSTER, "--wait", "--timeout", "30m")
    assert stage(management) == "Awake"
    assert guest.ready_nodes() == [machine["metadata"]["name"]]
    assert guest.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.a}") == "b"
    [same] = management.get("machine", "-n", HOSTED)["items"]
    assert same["metadata"]["uid"] == machine["metadata"]["uid"]
    assert not same["status"].get("failureReason")
    assert management.get("noderepairs", "-n", HOSTED)["items"] == []


def test_it_can_be_destroyed_while_it_sleeps(management: Cluster) -> None:
    asked(management, "hibernate", CLUSTER, "--wait", "--timeout", "20m")
    asked(management, "destroy", "cluster", "kubevirt", "--name", CLUSTER)

    def gone() -> bool:
        return HOSTED not in {one["metadata"]["name"] for one in management.get("namespaces")["items"]}

    eventually_sync(gone, "its namespace is gone", 600)
