"""A hosted cluster with a node, published by Routes alone: everything goes over the one address of the router."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.e2e.hosted_tools import Guest, with_nodes
from tests.support.e2e.local_tools import Cluster
from tests.support.eventually import eventually_sync

NAME = CLUSTER = "routed"
CONTROL_PLANE = f"clusters-{CLUSTER}"
pytestmark = pytest.mark.timeout(5400)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_nodes(1, NAME, CLUSTER, tmp_path_factory.mktemp("routed"), more=("--publish", "route")) as made:
        yield made


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    return Guest.of(management, CLUSTER)


def test_no_service_of_the_control_plane_has_an_address(management: Cluster) -> None:
    services = management.get("services", "-n", CONTROL_PLANE)["items"]
    assert services and {one["spec"]["type"] for one in services} == {"ClusterIP"}
    cluster = management.get("hostedcluster", CLUSTER, "-n", "clusters")
    assert cluster["status"]["controlPlaneEndpoint"]["port"] == 443


def test_the_node_the_tunnel_and_people_use_it(management: Cluster, guest: Guest) -> None:
    eventually_sync(guest.ready_nodes, "the node is ready", 600)

    def connected() -> bool:
        conditions = management.get("hostedcluster", CLUSTER, "-n", "clusters")["status"]["conditions"]
        found = {one["type"]: one["status"] for one in conditions}
        return {found["DataPlaneConnectionAvailable"], found["ControlPlaneConnectionAvailable"]} == {"True"}

    eventually_sync(connected, "both ways between control plane and nodes are there", 600)

    def logs() -> bool:
        agents = guest.get("pods", "-n", "kube-system", "-l", "k8s-app=konnectivity-agent")["items"]
        guest.kubectl("logs", "-n", "kube-system", agents[0]["metadata"]["name"], "--tail=1")
        return True

    eventually_sync(logs, "logs come through the tunnel", 300)


def test_pods_reach_their_api_by_its_service(guest: Guest) -> None:
    """CoreDNS asks the Service `kubernetes`, trusts only the cluster's authority, and is ready when it was answered."""
    environment = guest.get("pods", "-n", "kube-system", "-l", "k8s-app=kube-dns")["items"]
    assert environment and "KUBERNETES_SERVICE_HOST" not in str(environment[0]["spec"]["containers"][0].get("env"))
    guest.kubectl("delete", "pods", "-n", "kube-system", "-l", "k8s-app=kube-dns", "--grace-period=1")

    def anew() -> bool:
        pods = guest.get("pods", "-n", "kube-system", "-l", "k8s-app=kube-dns")["items"]
        old = {pod["metadata"]["uid"] for pod in environment}
        ready = [one for pod in pods for one in pod["status"].get("conditions", []) if one["type"] == "Ready"]
        return not old & {pod["metadata"]["uid"] for pod in pods} and any(one["status"] == "True" for one in ready)

    eventually_sync(anew, "new pods of CoreDNS are ready", 300)
