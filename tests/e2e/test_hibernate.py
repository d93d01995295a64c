"""A hosted cluster with a machine sleeps and wakes: the same machine and node, what it stored. Each test builds on the
last."""

from __future__ import annotations

import base64
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.e2e.hosted_tools import SMALL_VM, Guest, leave, router_address, with_one_node
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync

NAME = "hibernate"
CLUSTER = "sleeper"
HOSTED = f"clusters-{CLUSTER}"
# Published by the router, and woken by whoever connects.
CALLED = "called"

pytestmark = pytest.mark.timeout(5400)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_one_node(NAME, CLUSTER, tmp_path_factory.mktemp("hibernate")) as made:
        try:
            yield made
        finally:
            leave(made, CALLED)


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    return Guest.of(management, CLUSTER)


def asked(management: Cluster, *words: str) -> str:
    return hcp(*words, f"--kubeconfig={management.kubeconfig}").stdout


def stage(management: Cluster, cluster: str = CLUSTER) -> str:
    found: list[dict[str, Any]] = management.get("hostedcluster", cluster, "-n", "clusters")["status"]["conditions"]
    return str(next((one["reason"] for one in found if one["type"] == "Hibernating"), ""))


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


def request(management: Cluster) -> str:
    """The answer of the hosted API over one connection to the router, checked with the cluster's own authority."""
    host = management.get("route", "kube-apiserver", "-n", f"clusters-{CALLED}")["spec"]["host"]
    secret = management.get("secret", "root-ca", "-n", f"clusters-{CALLED}")
    context = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())
    plain = socket.create_connection((router_address(management), 443), timeout=300)
    with plain, context.wrap_socket(plain, server_hostname=host) as talk:
        talk.sendall(f"GET /readyz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return talk.recv(4096).decode()


def sleeps(management: Cluster, *words: str) -> None:
    asked(management, "hibernate", CALLED, *words, "--wait", "--timeout", "20m")

    def marked() -> bool:
        route = management.get("route", "kube-apiserver", "-n", f"clusters-{CALLED}")
        return "hypershift.openshift.io/sleeps-since" in route["metadata"].get("annotations", {})

    eventually_sync(marked, "the Route says that it sleeps", 60)


def test_the_first_request_to_its_api_wakes_it(management: Cluster, tmp_path: Path) -> None:
    secret = tmp_path / "pull-secret.json"
    secret.write_text('{"auths": {}}')
    asked(
        management,
        *("create", "cluster", "kubevirt", "--name", CALLED, "--pull-secret", str(secret), *SMALL_VM),
        *("--node-pool-replicas", "0", "--control-plane-availability-policy", "SingleReplica"),
        *("--publish", "route", "--wait", "--timeout", "15m"),
    )
    eventually_sync(lambda: " 200 " in request(management), "the API answers over the router", 120)
    sleeps(management, "--wake-on-request")
    time.sleep(60)  # whatever of ours looked after it by connecting would have woken it
    assert stage(management, CALLED) == "Asleep"
    assert "first request to its API" in asked(management, "get", "clusters")
    assert " 200 " in request(management), "one connection waited for all of it"
    eventually_sync(lambda: stage(management, CALLED) == "Awake", "awake", 300)


def test_its_machine_comes_back_after_a_request(management: Cluster) -> None:
    asked(management, "scale", "nodepool", CALLED, "--replicas", "1", "--wait", "--timeout", "25m")
    [machine] = management.get("machine", "-n", f"clusters-{CALLED}")["items"]
    sleeps(management)
    assert management.get("vmi", "-n", f"clusters-{CALLED}")["items"] == []
    assert " 200 " in request(management)
    eventually_sync(lambda: stage(management, CALLED) == "Awake", "its node has reported", 1800)
    [same] = management.get("machine", "-n", f"clusters-{CALLED}")["items"]
    assert same["metadata"]["uid"] == machine["metadata"]["uid"]
    asked(management, "destroy", "cluster", "kubevirt", "--name", CALLED)
