"""The longer life of nodes: labels, configuration, repair, isolation, cache. Each test builds on the one before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.hosted_tools import Guest
from tests.e2e.local_tools import Cluster, eventually, hcp

NAME = "nodes"
CLUSTER = "life"
HOSTED = f"clusters-{CLUSTER}"
VM = ("--memory", "2Gi", "--cores", "1", "--root-volume-size", "16")

pytestmark = pytest.mark.timeout(5400)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("nodes")
    hcp("local", "up", "--name", NAME, "--profile", "kubevirt")
    try:
        made = Cluster(NAME, folder)
        access = ("--kubeconfig", str(made.kubeconfig))
        hcp("install", *access, "--wait-until-available")
        secret = folder / "pull-secret.json"
        secret.write_text('{"auths": {}}')
        hcp(
            *("create", "cluster", "kubevirt", "--name", CLUSTER, "--pull-secret", str(secret), *access, *VM),
            *("--node-pool-replicas", "1", "--control-plane-availability-policy", "SingleReplica"),
        )
        hcp("wait", "nodepool", CLUSTER, "--timeout", "25m", *access)
        yield made
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    path = management.kubeconfig.with_name("guest.kubeconfig")
    path.write_text(hcp("create", "kubeconfig", "--name", CLUSTER, "--kubeconfig", str(management.kubeconfig)).stdout)
    return Guest(management, path)


def patch_pool(management: Cluster, body: dict[str, Any], name: str = CLUSTER) -> None:
    management.kubectl("patch", "nodepool", name, "-n", "clusters", "--type=merge", "-p", json.dumps(body))


def node_names(guest: Guest) -> set[str]:
    return {node["metadata"]["name"] for node in guest.get("nodes")["items"]}


def condition(management: Cluster, kind: str, name: str = CLUSTER) -> dict[str, Any]:
    pool = management.get("nodepool", name, "-n", "clusters")
    found: dict[str, Any] = next(entry for entry in pool["status"]["conditions"] if entry["type"] == kind)
    return found


def test_machines_run_and_nodes_are_known(management: Cluster, guest: Guest) -> None:
    [node] = guest.get("nodes")["items"]
    name = node["metadata"]["name"]
    assert "node-role.kubernetes.io/worker" in node["metadata"]["labels"]
    assert node["spec"]["providerID"] == f"kubevirt://{name}"
    eventually(
        lambda: management.get("machine", name, "-n", HOSTED)["status"]["phase"] == "Running", "the machine runs", 180
    )
    assert condition(management, "ReachedIgnitionEndpoint")["status"] == "True"
    eventually(lambda: condition(management, "UpdatingVersion")["status"] == "False", "the pool is up to date", 120)


def test_labels_and_taints_change_in_place(management: Cluster, guest: Guest) -> None:
    before = node_names(guest)
    [name] = before
    taint = {"key": "example.com/x", "value": "y", "effect": "PreferNoSchedule"}
    patch_pool(management, {"spec": {"nodeLabels": {"zone": "a"}, "taints": [taint]}})

    def labelled() -> bool:
        node = guest.get("node", name)
        taints = node["spec"].get("taints") or []
        return node["metadata"]["labels"].get("zone") == "a" and any(t["key"] == "example.com/x" for t in taints)

    eventually(labelled, "label and taint on the node", 60)
    patch_pool(management, {"spec": {"nodeLabels": None, "taints": None}})
    eventually(lambda: "zone" not in guest.get("node", name)["metadata"]["labels"], "the label is gone", 60)
    assert node_names(guest) == before


def test_guests_cannot_reach_the_management_networks(management: Cluster, guest: Guest) -> None:
    guest.run_web("probe", replicas=1)
    pod = guest.get("pods", "-l", "app=probe")["items"][0]["metadata"]["name"]
    etcd = management.get("pod", "etcd-0", "-n", HOSTED)["status"]["podIP"]
    service = management.get("service", "kubernetes", "-n", "default")["spec"]["clusterIP"]
    program = "import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"
    for address, port in ((etcd, 2379), (service, 443)):
        with pytest.raises(AssertionError):
            guest.kubectl("exec", pod, "--", "python3", "-c", program, address, str(port))
    guest.kubectl("exec", pod, "--", "python3", "-c", program, "kubernetes.default", "443")


def test_a_machine_deleted_by_hand_comes_back(management: Cluster, guest: Guest) -> None:
    [name] = node_names(guest)
    old = management.get("vm", name, "-n", HOSTED)["metadata"]["uid"]
    management.kubectl("delete", "vm", name, "-n", HOSTED, "--wait=true", seconds=300)
    eventually(lambda: management.get("vm", name, "-n", HOSTED)["metadata"]["uid"] != old, "a new machine", 300)
    eventually(lambda: guest.ready_nodes() == [name], "its node is ready again", 1200)


def test_configuration_replaces_machines(management: Cluster, guest: Guest) -> None:
    before = node_names(guest)
    text = "\n".join(
        (
            "apiVersion: machineconfiguration.openshift.io/v1",
            "kind: KubeletConfig",
            "metadata: {name: pods}",
            "spec: {kubeletConfig: {maxPods: 42}}",
        )
    )
    metadata = {"name": "pods", "namespace": "clusters"}
    management.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config": text}})
    patch_pool(management, {"spec": {"config": [{"name": "pods"}]}})

    def replaced() -> bool:
        nodes = guest.get("nodes")["items"]
        names = {node["metadata"]["name"] for node in nodes}
        return not names & before and [node["status"]["capacity"]["pods"] for node in nodes] == ["42"]

    eventually(replaced, "a new node with the new configuration", 1800)
    eventually(lambda: condition(management, "UpdatingConfig")["status"] == "False", "the roll-out is over", 300)


def test_a_pool_with_a_cache_clones_it(management: Cluster, guest: Guest) -> None:
    access = ("--kubeconfig", str(management.kubeconfig))
    hcp(
        *("create", "nodepool", "kubevirt", "--name", "cached", "--cluster-name", CLUSTER, "--replicas", "1"),
        *("--root-volume-cache-strategy", "PVC", *VM, *access),
    )
    hcp("wait", "nodepool", "cached", "--timeout", "30m", *access)
    label = "hypershift.openshift.io/kubevirt-boot-image-role=kv-boot-image-cache"
    [cache] = management.get("datavolume", "-n", HOSTED, "-l", label)["items"]
    assert cache["status"]["phase"] == "Succeeded"
    assert len(guest.ready_nodes()) == 2
    hcp("destroy", "nodepool", "--name", "cached", *access)
    eventually(lambda: not management.get("datavolume", "-n", HOSTED, "-l", label)["items"], "the cache is gone", 300)
    eventually(lambda: len(node_names(guest)) == 1, "the pool's node is gone", 300)
