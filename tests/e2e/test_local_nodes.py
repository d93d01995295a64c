"""Several nodes: packets, policies and volumes between them, a pulled plug, a node that leaves, all back again."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.e2e.local_tools import Cluster, hcp, namespace, server, service
from tests.support.eventually import eventually_sync

from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import joined
from hcp.local.supervisor import control

NAME = "e2e-nodes"
NS = "check"
SECOND, THIRD = f"hcp-{NAME}-2", f"hcp-{NAME}-3"

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    hcp("local", "up", "--name", NAME, "--profile", "cluster", "--nodes", "3")
    try:
        found = Cluster(NAME, tmp_path_factory.mktemp("kubeconfig"))
        image = found.image()
        found.apply(namespace(NS), claim("shared"))
        for pod, node in (("one", f"hcp-{NAME}"), ("two", SECOND), ("three", THIRD)):
            found.apply(server(NS, pod, image, nodeName=node, **volume("shared")), service(NS, pod))
        found.wait_pods(NS, "one", "two", "three")
        yield found
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


def claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": NS},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "64Mi"}}},
    }


def volume(name: str) -> dict[str, Any]:
    return {
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}],
        "container": {"volumeMounts": [{"name": "v", "mountPath": "/shared"}]},
    }


def ready(cluster: Cluster) -> dict[str, bool]:
    return {
        node["metadata"]["name"]: any(
            c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"]
        )
        for node in cluster.get("nodes")["items"]
    }


def test_pods_of_all_nodes_reach_each_other_by_address_name_and_service(cluster: Cluster) -> None:
    pods = {p["metadata"]["name"]: p["status"]["podIP"] for p in cluster.get("pods", "-n", NS)["items"]}
    for asking in pods:
        for asked, address in pods.items():
            assert cluster.ask(NS, asking, f"http://{address}:8080") == f"I am {asked}"
            assert cluster.ask(NS, asking, f"http://{asked}.{NS}.svc.cluster.local") == f"I am {asked}"


def test_a_pod_keeps_its_address_on_the_way_so_policies_mean_it(cluster: Cluster) -> None:
    """Only pod three may ask pod two, which runs on another node."""
    rule = {"from": [{"podSelector": {"matchLabels": {"app": "three"}}}]}
    spec = {"podSelector": {"matchLabels": {"app": "two"}}, "policyTypes": ["Ingress"], "ingress": [rule]}
    cluster.apply(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "only-three", "namespace": NS},
            "spec": spec,
        }
    )
    url = f"http://two.{NS}.svc.cluster.local"
    eventually_sync(lambda: cluster.ask(NS, "one", url).startswith("failed"), "pod one is kept out")
    assert cluster.ask(NS, "three", url) == "I am two"
    cluster.kubectl("delete", "networkpolicy", "--all", "-n", NS)
    eventually_sync(lambda: cluster.ask(NS, "one", url) == "I am two", "pod one is let in again")


def test_a_load_balancer_address_leads_to_a_pod_of_any_node(cluster: Cluster) -> None:
    cluster.kubectl("patch", "service", "three", "-n", NS, "-p", json.dumps({"spec": {"type": "LoadBalancer"}}))

    def answer() -> str:
        address = cluster.get("service", "three", "-n", NS)["status"]["loadBalancer"]["ingress"][0]["ip"]
        with urllib.request.urlopen(f"http://{address}", timeout=3) as said:
            body: bytes = said.read()
            return body.decode()

    assert eventually_sync(answer) == "I am three"


def test_one_volume_is_written_on_one_node_and_read_on_another(cluster: Cluster) -> None:
    cluster.kubectl("exec", "-n", NS, "two", "--", "python3", "-c", "open('/shared/a', 'w').write('from two')")
    for pod in ("one", "three"):
        program = "print(open('/shared/a').read())"
        assert cluster.kubectl("exec", "-n", NS, pod, "--", "python3", "-c", program).strip() == "from two"


def test_what_a_joined_node_has_on_disk_is_its_own(cluster: Cluster) -> None:
    """A pod that may look at the whole node finds no authority's key there."""
    probe = server(NS, "looker", cluster.image(), nodeName=SECOND)
    probe["spec"]["volumes"] = [{"name": "root", "hostPath": {"path": "/var/lib/hcp"}}]
    probe["spec"]["containers"][0] |= {
        "volumeMounts": [{"name": "root", "mountPath": "/host"}],
        "securityContext": {"runAsUser": 0},
    }
    cluster.apply(probe)
    cluster.wait_pods(NS, "looker")
    program = "import pathlib; print(*sorted(p.name for p in pathlib.Path('/host').rglob('*.key')))"
    keys = cluster.kubectl("exec", "-n", NS, "looker", "--", "python3", "-c", program).split()
    assert keys == ["kube-proxy.key", "kubelet-serving.key", "kubelet.key"]
    cluster.kubectl("delete", "pod", "looker", "-n", NS)


def test_a_second_up_changes_nothing(cluster: Cluster) -> None:
    before = {p["metadata"]["uid"] for p in cluster.get("pods", "-A")["items"]}
    assert "nothing had to be done" in hcp("local", "up", "--name", NAME).stdout
    assert {p["metadata"]["uid"] for p in cluster.get("pods", "-A")["items"]} == before
    refused = hcp("local", "up", "--name", NAME, "--nodes", "2", check=False)
    assert refused.returncode != 0
    assert "takes none away" in refused.stderr


def test_a_pulled_plug_is_noticed_and_the_node_comes_back_with_its_pods(cluster: Cluster) -> None:
    hcp("local", "node", "stop", "3", "--now", "--name", NAME)
    assert "stopped" in hcp("local", "node", "list", "--name", NAME).stdout
    said = hcp("local", "status", "--name", NAME, check=False).stdout
    assert f"hcp local node start {THIRD} --name {NAME}" in said
    eventually_sync(lambda: ready(cluster)[THIRD] is False, "the cluster knows", 180)
    assert cluster.ask(NS, "one", f"http://two.{NS}.svc.cluster.local") == "I am two"
    hcp("local", "node", "start", THIRD, "--name", NAME)
    assert ready(cluster) == {f"hcp-{NAME}": True, SECOND: True, THIRD: True}
    eventually_sync(
        lambda: cluster.ask(NS, "one", f"http://three.{NS}.svc.cluster.local") == "I am three", "pod three is back", 180
    )
    program = "print(open('/shared/a').read())"
    assert cluster.kubectl("exec", "-n", NS, "three", "--", "python3", "-c", program).strip() == "from two"


def test_the_first_node_comes_back_while_the_others_go_on(cluster: Cluster) -> None:
    refused = hcp("local", "node", "stop", "1", "--name", NAME, check=False)
    assert "is the first node" in refused.stderr
    second = Layout.of(NAME).joined(2)
    before = control.running(second)
    found = control.running(Layout.of(NAME))
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)
    assert "was stopped from outside, bringing it back" in hcp("local", "up", "--name", NAME).stderr
    assert control.running(second) == before
    eventually_sync(
        lambda: cluster.ask(NS, "two", f"http://one.{NS}.svc.cluster.local") == "I am one", "pod one is back", 180
    )


def test_a_node_joins_and_leaves_after_its_pods_have_moved(cluster: Cluster) -> None:
    hcp("local", "node", "add", "--name", NAME)
    fourth = f"hcp-{NAME}-4"
    assert ready(cluster)[fourth]
    container = server(NS, "moving", cluster.image())["spec"]["containers"][0]
    labels = {"app": "moving"}
    cluster.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "moving", "namespace": NS},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "containers": [container],
                        "affinity": {
                            "nodeAffinity": {
                                "preferredDuringSchedulingIgnoredDuringExecution": [
                                    {
                                        "weight": 100,
                                        "preference": {
                                            "matchExpressions": [
                                                {
                                                    "key": "kubernetes.io/hostname",
                                                    "operator": "In",
                                                    "values": [fourth],
                                                }
                                            ]
                                        },
                                    }
                                ]
                            }
                        },
                    },
                },
            },
        }
    )

    def where() -> str:
        [pod] = cluster.get("pods", "-n", NS, "-l", "app=moving")["items"]
        return str(pod["spec"]["nodeName"]) if pod["status"]["phase"] == "Running" else ""

    assert eventually_sync(where, "it runs", 120) == fourth
    hcp("local", "node", "remove", "4", "--name", NAME)
    assert fourth not in ready(cluster)
    assert eventually_sync(where, "it runs elsewhere", 120) != fourth
    assert hcp("local", "node", "list", "--name", NAME, "-o", "name").stdout.split() == [f"hcp-{NAME}", SECOND, THIRD]


def test_everything_comes_back_after_the_cluster_was_down(cluster: Cluster) -> None:
    spec = specs.load(Layout.of(NAME))
    assert spec is not None
    links = {node.link for node in joined(spec)}
    there = {path.name for path in Path("/sys/class/net").iterdir()}
    assert links <= there
    hcp("local", "down", "--name", NAME)
    assert links.isdisjoint(path.name for path in Path("/sys/class/net").iterdir())
    hcp("local", "up", "--name", NAME)
    assert all(ready(cluster).values())
    assert len(ready(cluster)) == 3
    for pod in ("one", "two", "three"):
        eventually_sync(
            lambda pod=pod: cluster.ask(NS, "one", f"http://{pod}.{NS}.svc.cluster.local") == f"I am {pod}",  # type: ignore[misc]
            f"pod {pod} is back",
            180,
        )
    program = "print(open('/shared/a').read())"
    assert cluster.kubectl("exec", "-n", NS, "two", "--", "python3", "-c", program).strip() == "from two"
