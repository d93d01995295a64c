"""Hosted control planes on an embedded cluster: published in every way, killed, restarted, and gone without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.e2e.control_planes import NS, available, condition, create, guest_of
from tests.support.e2e.local_tools import Cluster, hcp, well
from tests.support.eventually import eventually_sync

NAME = "hosted"
COMPONENTS = "hypershift.openshift.io/control-plane-component"

pytestmark = pytest.mark.timeout(3000)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    hcp("local", "up", "--name", NAME, "--profile", "cluster")
    try:
        hcp("local", "push", "--name", NAME, "image-hcp", "release-1.36")
        found = Cluster(NAME, tmp_path_factory.mktemp("hosted"))
        hcp("install", "--kubeconfig", str(found.kubeconfig), "--wait-until-available")
        found.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
        yield found
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


def pods(management: Cluster, name: str) -> dict[str, str]:
    found = management.get("pods", "-n", f"{NS}-{name}", "-l", COMPONENTS)["items"]
    return {p["metadata"]["name"]: p["metadata"]["uid"] for p in found}


def test_one_cluster_is_available_small_and_answers(management: Cluster, tmp_path: Path) -> None:
    create(management, tmp_path, "one")
    available(management, "one")
    names = {n["metadata"]["name"] for n in guest_of(management, tmp_path, "one").get("namespaces")["items"]}
    assert {"default", "kube-system"} <= names
    assert len(pods(management, "one")) == 4
    live = management.get("hostedcluster", "one", "-n", NS)
    assert live["status"]["version"]["history"][0]["state"] == "Partial"
    assert "no nodes" in condition(management, "one", "Progressing")["message"]


def test_etcd_and_api_server_come_back_when_they_are_killed(management: Cluster, tmp_path: Path) -> None:
    guest = guest_of(management, tmp_path, "one")
    guest.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    for component in ("etcd", "kube-apiserver"):
        before = pods(management, "one")
        management.kubectl(
            *("delete", "pod", "-n", f"{NS}-one", "-l", f"app={component}", "--grace-period=0", "--force")
        )
        eventually_sync(lambda b=before: pods(management, "one") != b, "a new pod", 120)  # type: ignore[misc]
        eventually_sync(lambda: guest.get("configmap", "kept")["data"] == {"a": "b"}, "the data is back", 180)
    available(management, "one")


def test_restarting_the_operator_rolls_nothing(management: Cluster) -> None:
    eventually_sync(lambda: condition(management, "one", "Degraded").get("status") == "False", "calm", 120)
    before = pods(management, "one")
    management.kubectl("rollout", "restart", "-n", "hypershift", "deployment/operator")
    management.kubectl("rollout", "status", "-n", "hypershift", "deployment/operator", "--timeout=180s", seconds=200)
    management.kubectl("annotate", "hostedcluster", "one", "-n", NS, "look=again")
    eventually_sync(lambda: condition(management, "one", "Available").get("status") == "True", "Available", 60)
    assert pods(management, "one") == before


def test_published_by_route_and_by_node_port(management: Cluster, tmp_path: Path) -> None:
    address = management.get("nodes")["items"][0]["status"]["addresses"][0]["address"]
    create(management, tmp_path, "port", publish={"type": "NodePort", "nodePort": {"address": address}})
    create(management, tmp_path, "route", publish={"type": "Route"})
    for name in ("port", "route"):
        available(management, name)
        endpoint = management.get("hostedcluster", name, "-n", NS)["status"]["controlPlaneEndpoint"]
        assert (endpoint["host"] == address) == (name == "port")
        assert (endpoint["port"] == 443) == (name == "route")
    names = {n["metadata"]["name"] for n in guest_of(management, tmp_path, "port").get("namespaces")["items"]}
    assert "kube-system" in names


def test_three_replicas_on_one_node_work_and_say_so(management: Cluster, tmp_path: Path) -> None:
    management.kubectl("delete", "hostedcluster", "port", "route", "-n", NS, seconds=300)
    create(management, tmp_path, "high", "--control-plane-availability-policy", "HighlyAvailable")
    available(management, "high")
    assert condition(management, "high", "ControlPlaneSpread")["status"] == "False"


def test_nothing_is_left(management: Cluster) -> None:
    management.kubectl("delete", "hostedcluster", "--all", "-n", NS, seconds=600)
    left = {n["metadata"]["name"] for n in management.get("namespaces")["items"]}
    assert not {n for n in left if n.startswith(f"{NS}-")}
    well(NAME)
