"""A hosted cluster that the router publishes sleeps, and whoever connects to its API wakes it; its machine comes back.
Each test builds on the last."""

from __future__ import annotations

import base64
import socket
import ssl
import time
from collections.abc import Iterator

import pytest
from tests.support.e2e.control_planes import condition
from tests.support.e2e.hosted_tools import create, kept, leave, router_address, with_operator
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync

# Made as that of test_publish_route.py: with KEEP=1 its machine need not boot again.
NAME = CLUSTER = "routed"
HOSTED = f"clusters-{CLUSTER}"

pytestmark = pytest.mark.timeout(5400)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_operator(NAME, tmp_path_factory.mktemp("called")) as made:
        try:
            if not kept(made, CLUSTER):
                create(made, CLUSTER, 0, "--publish", "route")
            asked(made, "wait", "cluster", CLUSTER, "--control-plane", "--timeout", "20m")
            yield made
        finally:
            leave(made, CLUSTER)


def asked(management: Cluster, *words: str) -> str:
    return hcp(*words, f"--kubeconfig={management.kubeconfig}").stdout


def stage(management: Cluster) -> str:
    return str(condition(management, CLUSTER, "Hibernating").get("reason", ""))


def request(management: Cluster) -> str:
    """The answer of the hosted API over one connection to the router, checked with the cluster's own authority."""
    host = management.get("route", "kube-apiserver", "-n", HOSTED)["spec"]["host"]
    secret = management.get("secret", "root-ca", "-n", HOSTED)
    context = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())
    plain = socket.create_connection((router_address(management), 443), timeout=300)
    with plain, context.wrap_socket(plain, server_hostname=host) as talk:
        talk.sendall(f"GET /readyz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return talk.recv(4096).decode()


def sleeps(management: Cluster, *words: str) -> None:
    asked(management, "hibernate", CLUSTER, *words, "--wait", "--timeout", "20m")

    def marked() -> bool:
        route = management.get("route", "kube-apiserver", "-n", HOSTED)
        return "hypershift.openshift.io/sleeps-since" in route["metadata"].get("annotations", {})

    eventually_sync(marked, "the Route says that it sleeps", 300)


def test_the_first_request_to_its_api_wakes_it(management: Cluster) -> None:
    eventually_sync(lambda: " 200 " in request(management), "the API answers over the router", 300)
    sleeps(management, "--wake-on-request")
    time.sleep(60)  # whatever of ours looked after it by connecting would have woken it
    assert stage(management) == "Asleep"
    assert "first request to its API" in asked(management, "get", "clusters")
    assert " 200 " in request(management), "one connection waited for all of it"
    eventually_sync(lambda: stage(management) == "Awake", "awake", 1800)


def test_its_machine_comes_back_after_a_request(management: Cluster) -> None:
    asked(management, "scale", "nodepool", CLUSTER, "--replicas", "1", "--wait", "--timeout", "25m")
    [machine] = management.get("machine", "-n", HOSTED)["items"]
    sleeps(management)
    assert management.get("vmi", "-n", HOSTED)["items"] == []
    assert " 200 " in request(management)
    eventually_sync(lambda: stage(management) == "Awake", "its node has reported", 1800)
    [same] = management.get("machine", "-n", HOSTED)["items"]
    assert same["metadata"]["uid"] == machine["metadata"]["uid"]
