"""The longer life of nodes: labels, configuration, isolation, cache, releases. Each test builds on the last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.e2e.hosted_tools import SMALL_VM, Guest, with_one_node
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync

NAME = "nodes"
CLUSTER = "life"
HOSTED = f"clusters-{CLUSTER}"

pytestmark = pytest.mark.timeout(5400)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_one_node(NAME, CLUSTER, tmp_path_factory.mktemp("nodes")) as made:
        yield made


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    return Guest.of(management, CLUSTER)


def patch_pool(management: Cluster, body: dict[str, Any], name: str = CLUSTER) -> None:
    management.kubectl("patch", "nodepool", name, "-n", "clusters", "--type=merge", "-p", json.dumps(body))


def node_names(guest: Guest) -> set[str]:
    return {node["metadata"]["name"] for node in guest.get("nodes")["items"]}


def access(management: Cluster) -> tuple[str, str]:
    return ("--kubeconfig", str(management.kubeconfig))


def release(management: Cluster, component: str) -> str:
    """The reference of a release in the cluster's registry."""
    lines = hcp("local", "push", "--name", NAME, component).stdout.splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{component} "))


def pool_nodes(guest: Guest, pool: str) -> list[str]:
    found = guest.get("nodes", "-l", f"hypershift.openshift.io/nodePool={pool}")["items"]
    return [node["metadata"]["name"] for node in found]


def kubelets(guest: Guest, pool: str) -> set[str]:
    """The minors of a pool's nodes that are ready."""
    found = guest.get("nodes", "-l", f"hypershift.openshift.io/nodePool={pool}")["items"]
    ready = set(guest.ready_nodes())
    versions = [n["status"]["nodeInfo"]["kubeletVersion"] for n in found if n["metadata"]["name"] in ready]
    return {version.rpartition(".")[0] for version in versions}


def wanted_version(management: Cluster, pool: str) -> str:
    found: str = management.get("machinedeployment", pool, "-n", HOSTED)["spec"]["template"]["spec"]["version"]
    return found


def condition(management: Cluster, kind: str, name: str = CLUSTER) -> dict[str, Any]:
    pool = management.get("nodepool", name, "-n", "clusters")
    found: dict[str, Any] = next(entry for entry in pool["status"]["conditions"] if entry["type"] == kind)
    return found


def test_machines_run_and_nodes_are_known(management: Cluster, guest: Guest) -> None:
    [node] = guest.get("nodes")["items"]
    name = node["metadata"]["name"]
    assert "node-role.kubernetes.io/worker" in node["metadata"]["labels"]
    assert node["spec"]["providerID"] == f"kubevirt://{name}"
    eventually_sync(
        lambda: management.get("machine", name, "-n", HOSTED)["status"]["phase"] == "Running", "the machine runs", 180
    )
    assert condition(management, "ReachedIgnitionEndpoint")["status"] == "True"
    eventually_sync(
        lambda: condition(management, "UpdatingVersion")["status"] == "False", "the pool is up to date", 120
    )


def test_labels_and_taints_change_in_place(management: Cluster, guest: Guest) -> None:
    before = node_names(guest)
    [name] = before
    taint = {"key": "example.com/x", "value": "y", "effect": "PreferNoSchedule"}
    patch_pool(management, {"spec": {"nodeLabels": {"zone": "a"}, "taints": [taint]}})

    def labelled() -> bool:
        node = guest.get("node", name)
        taints = node["spec"].get("taints") or []
        return node["metadata"]["labels"].get("zone") == "a" and any(t["key"] == "example.com/x" for t in taints)

    eventually_sync(labelled, "label and taint on the node", 60)
    patch_pool(management, {"spec": {"nodeLabels": None, "taints": None}})
    eventually_sync(lambda: "zone" not in guest.get("node", name)["metadata"]["labels"], "the label is gone", 60)
    assert node_names(guest) == before


def test_guests_cannot_reach_the_management_networks(management: Cluster, guest: Guest) -> None:
    guest.run_web("probe", replicas=1)
    pod = guest.get("pods", "-l", "app=probe")["items"][0]["metadata"]["name"]

    def reaches(address: str, port: int) -> bool:
        """Says it in words: a shell that could not run at all must not count as a closed door."""
        line = f"if nc -w 5 {address} {port} < /dev/null; then echo open; else echo closed; fi"
        return {"open": True, "closed": False}[guest.kubectl("exec", pod, "--", "sh", "-c", line).strip()]

    assert reaches(guest.get("service", "kubernetes")["spec"]["clusterIP"], 443)
    etcd = management.get("pod", "etcd-0", "-n", HOSTED)["status"]["podIP"]
    assert not reaches(etcd, 2379)
    assert not reaches(management.get("service", "kubernetes", "-n", "default")["spec"]["clusterIP"], 443)


def test_a_machine_deleted_by_hand_comes_back(management: Cluster, guest: Guest) -> None:
    [name] = node_names(guest)
    old = management.get("vm", name, "-n", HOSTED)["metadata"]["uid"]
    management.kubectl("delete", "vm", name, "-n", HOSTED, "--wait=true", seconds=300)
    eventually_sync(lambda: management.get("vm", name, "-n", HOSTED)["metadata"]["uid"] != old, "a new machine", 300)
    eventually_sync(lambda: guest.ready_nodes() == [name], "its node is ready again", 1200)


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

    eventually_sync(replaced, "a new node with the new configuration", 1800)
    eventually_sync(lambda: condition(management, "UpdatingConfig")["status"] == "False", "the roll-out is over", 300)


def test_a_pool_with_a_cache_clones_it(management: Cluster, guest: Guest) -> None:
    hcp(
        *("create", "nodepool", "kubevirt", "--name", "cached", "--cluster-name", CLUSTER, "--replicas", "1"),
        *("--root-volume-cache-strategy", "PVC", *SMALL_VM, *access(management)),
    )
    hcp("wait", "nodepool", "cached", "--timeout", "30m", *access(management))
    label = "hypershift.openshift.io/kubevirt-boot-image-role=kv-boot-image-cache"
    [cache] = management.get("datavolume", "-n", HOSTED, "-l", label)["items"]
    assert cache["status"]["phase"] == "Succeeded"
    assert len(guest.ready_nodes()) == 2
    hcp("destroy", "nodepool", "--name", "cached", *access(management))
    eventually_sync(
        lambda: not management.get("datavolume", "-n", HOSTED, "-l", label)["items"], "the cache is gone", 300
    )
    eventually_sync(lambda: len(node_names(guest)) == 1, "the pool's node is gone", 300)


def test_a_pool_of_the_minor_before_joins(management: Cluster, guest: Guest) -> None:
    older = release(management, "release-1.35")
    hcp(
        *("create", "nodepool", "kubevirt", "--name", "older", "--cluster-name", CLUSTER, "--replicas", "1"),
        *("--release-image", older, *SMALL_VM, *access(management)),
    )
    hcp("wait", "nodepool", "older", "--timeout", "30m", *access(management))
    assert kubelets(guest, "older") == {"v1.35"}
    assert kubelets(guest, CLUSTER) == {"v1.36"}


def test_on_delete_leaves_machines_until_somebody_deletes_them(management: Cluster, guest: Guest) -> None:
    [before] = pool_nodes(guest, "older")
    patch_pool(management, {"spec": {"management": {"replace": {"strategy": "OnDelete"}}}}, "older")
    newer = release(management, "release-1.36")
    hcp("upgrade", "nodepool", "older", "--release-image", newer, *access(management))
    eventually_sync(lambda: condition(management, "UpdatingVersion", "older")["status"] == "True", "it is said", 60)
    eventually_sync(lambda: wanted_version(management, "older").startswith("1.36"), "new machines would be newer", 60)
    assert pool_nodes(guest, "older") == [before]
    management.kubectl("delete", "machine", before, "-n", HOSTED, "--wait=false")
    eventually_sync(lambda: kubelets(guest, "older") == {"v1.36"}, "a node of the new release instead", 1200)
    assert before not in pool_nodes(guest, "older")
    eventually_sync(lambda: condition(management, "UpdatingVersion", "older")["status"] == "False", "it is over", 120)
    pool = management.get("nodepool", "older", "-n", "clusters")
    assert pool["status"]["version"].startswith("1.36")
    hcp("destroy", "nodepool", "--name", "older", *access(management))
    eventually_sync(lambda: not pool_nodes(guest, "older"), "the pool is gone", 600)


def test_the_cluster_goes_with_its_pools_and_leaves_nothing(management: Cluster) -> None:
    management.kubectl("delete", "hostedcluster", CLUSTER, "-n", "clusters", seconds=900)
    eventually_sync(
        lambda: HOSTED not in [n["metadata"]["name"] for n in management.get("namespaces")["items"]], "all gone", 300
    )
    assert not management.get("nodepools", "-A")["items"]
    assert not management.get("vm,vmi,datavolumes", "-A")["items"]
