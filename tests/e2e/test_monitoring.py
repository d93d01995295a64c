"""Pods and nodes are measured: `kubectl top`, an autoscaler of pods, and Prometheus with all it asks up."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.support.e2e.hosted_tools import Guest, with_one_node
from tests.support.e2e.local_tools import Cluster
from tests.support.eventually import eventually_sync

NAME = "monitoring"
CLUSTER = "demo"
RELEASE = "release-1.36-monitoring"
NAMESPACE = "openshift-monitoring"

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_one_node(NAME, CLUSTER, tmp_path_factory.mktemp("monitoring"), RELEASE) as made:
        yield made


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    return Guest.of(management, CLUSTER)


def test_the_parts_are_well_and_named_as_people_know_them(guest: Guest) -> None:
    def well() -> bool:
        found = {one["metadata"]["name"]: one["status"]["conditions"] for one in guest.get("co")["items"]}
        return bool({one["type"]: one["status"] for one in found["monitoring"]}["Available"] == "True")

    eventually_sync(well, "the operator says that it works", 900)
    pods = [pod["metadata"]["name"] for pod in guest.get("pods", "-n", NAMESPACE)["items"]]
    assert "prometheus-k8s-0" in pods
    for name in ("kube-state-metrics-", "metrics-server-", "node-exporter-"):
        assert [pod for pod in pods if pod.startswith(name)], name


def test_top_shows_nodes_and_pods(guest: Guest) -> None:
    """kube-apiserver asks metrics-server through konnectivity."""

    def shown() -> list[str]:
        return guest.kubectl("top", "nodes", "--no-headers").splitlines()

    (line,) = eventually_sync(shown, "kubectl top nodes", 300)
    assert line.split()[0] in guest.ready_nodes()
    assert "prometheus-k8s-0" in guest.kubectl("top", "pods", "-n", NAMESPACE)
    print(guest.kubectl("top", "nodes") + guest.kubectl("top", "pods", "-A"))


def test_an_autoscaler_of_pods_follows_their_load(guest: Guest) -> None:
    guest.run_web("busy", replicas=1)
    container = {"name": "web", "resources": {"requests": {"cpu": "10m"}}}
    # A second process that never rests, beside the web server.
    burner = {
        "name": "burner",
        "image": guest.image(),
        "command": ["sh", "-c", "while :; do :; done"],
        "resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": "100m"}},
    }
    patch = {"spec": {"template": {"spec": {"containers": [container, burner], "topologySpreadConstraints": None}}}}
    guest.kubectl("patch", "deployment", "busy", "--type=strategic", "-p", json.dumps(patch))
    guest.kubectl("autoscale", "deployment", "busy", "--cpu=50%", "--min=1", "--max=2")

    def grown() -> bool:
        return bool(guest.get("hpa", "busy")["status"].get("desiredReplicas") == 2)

    eventually_sync(grown, "it asks for a second pod", 600)
    guest.kubectl("delete", "hpa,deployment,service", "busy")


def test_prometheus_asks_everything_there_is(guest: Guest) -> None:
    def up() -> bool:
        query = ["promtool", "query", "instant", "--http.config.file=/etc/monitoring/web/client.json", "-o", "json"]
        text = guest.kubectl(
            *("exec", "-n", NAMESPACE, "prometheus-k8s-0", "--", *query, "https://localhost:9091", "up")
        )
        found = {one["metric"]["job"]: one["value"][1] for one in json.loads(text)}
        wanted = {"apiserver", "coredns", "kube-state-metrics", "kubelet", "metrics-server", "node-exporter"}
        return wanted <= set(found) and all(value == "1" for value in found.values())

    eventually_sync(up, "every target answers", 600)


def test_without_the_capability_prometheus_is_gone_and_top_still_works(guest: Guest, management: Cluster) -> None:
    patch = json.dumps({"spec": {"capabilities": {"disabled": ["Monitoring"]}}})
    management.kubectl("patch", "hostedcluster", CLUSTER, "-n", "clusters", "--type=merge", "-p", patch)

    def left() -> bool:
        pods = [pod["metadata"]["name"] for pod in guest.get("pods", "-n", NAMESPACE)["items"]]
        return bool(pods) and all(pod.startswith("metrics-server-") for pod in pods)

    eventually_sync(left, "only metrics-server is left", 600)
    assert guest.kubectl("top", "nodes", "--no-headers")
