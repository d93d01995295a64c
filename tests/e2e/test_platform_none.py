"""A hosted cluster whose machines are the user's own: one is started by hand, joins, works, and outlives the cluster.

Each test builds on the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.e2e.hosted_tools import Guest
from tests.support.e2e.local_tools import Cluster, hcp, well
from tests.support.e2e.own_machine import started
from tests.support.eventually import eventually_sync as eventually

NAME, CLUSTER, NODE = "own", "own", "worker-1"
HOSTED = f"clusters-{CLUSTER}"

pytestmark = pytest.mark.timeout(3000)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """No KubeVirt: nothing of it is needed."""
    hcp("local", "up", "--name", NAME, "--profile", "cluster")
    try:
        hcp("local", "push", "--name", NAME, "image-hcp", "release-1.36")
        found = Cluster(NAME, tmp_path_factory.mktemp("own"))
        hcp("install", "--kubeconfig", str(found.kubeconfig), "--wait-until-available")
        yield found
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


@pytest.fixture(scope="module")
def access(management: Cluster) -> tuple[str, str]:
    return ("--kubeconfig", str(management.kubeconfig))


@pytest.fixture(scope="module")
def guest(management: Cluster, access: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Guest:
    """A cluster that expects one machine, as a person would make it."""
    folder = tmp_path_factory.mktemp("guest")
    secret = folder / "pull-secret.json"
    secret.write_text('{"auths": {}}')
    hcp(
        *("create", "cluster", "none", "--name", CLUSTER, "--pull-secret", str(secret), *access),
        *("--node-pool-replicas", "1", "--control-plane-availability-policy", "SingleReplica"),
        *("--etcd-storage-size", "1Gi"),
    )
    hcp("wait", "cluster", CLUSTER, "--control-plane", "--timeout", "10m", *access)
    path = folder / "kubeconfig"
    path.write_text(hcp("create", "kubeconfig", "--name", CLUSTER, *access).stdout)
    return Guest(management, path)


@pytest.fixture(scope="module")
def machine(guest: Guest, access: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The machine, from the drive that the command line wrote; gives its console."""
    folder = tmp_path_factory.mktemp("machine")
    drive = folder / "drive.iso"

    def written() -> bool:
        words = ("create", "config-drive", "--nodepool", CLUSTER, "--hostname", NODE, "-o", str(drive))
        return hcp(*words, *access, check=False).returncode == 0

    eventually(written, "the pool has a document", 120)
    with started(folder, drive) as console:
        yield console


def pool_condition(management: Cluster, kind: str) -> dict[str, str]:
    pool = management.get("nodepool", CLUSTER, "-n", "clusters")
    found: dict[str, str] = next((c for c in pool["status"]["conditions"] if c["type"] == kind), {})
    return found


def services(management: Cluster) -> set[str]:
    """Those of the bootstrap server."""
    names = {s["metadata"]["name"] for s in management.get("services", "-n", "hypershift")["items"]}
    return {name for name in names if name.startswith("ignition")}


def test_a_machine_started_by_hand_becomes_a_node(
    management: Cluster, access: tuple[str, str], guest: Guest, machine: Path
) -> None:
    try:
        eventually(lambda: guest.ready_nodes() == [NODE], f"node {NODE} is ready", 900)
    except AssertionError as error:
        raise AssertionError(f"{error}; its console:\n{machine.read_text(errors='replace')[-3000:]}") from error
    hcp("wait", "nodepool", CLUSTER, "--timeout", "5m", *access)
    assert pool_condition(management, "Ready")["status"] == "True"
    assert pool_condition(management, "ReachedIgnitionEndpoint")["status"] == "True"
    labels = guest.get("node", NODE)["metadata"]["labels"]
    assert labels["hypershift.openshift.io/nodePool"] == CLUSTER
    assert "node-role.kubernetes.io/worker" in labels
    for kind in ("machines.cluster.x-k8s.io", "machinedeployments.cluster.x-k8s.io", "clusters.cluster.x-k8s.io"):
        assert management.get(kind, "-n", HOSTED)["items"] == []
    assert management.get("pods", "-n", HOSTED, "-l", "kubevirt.io")["items"] == []


def test_the_cluster_completes_on_it_and_its_pods_are_reached(
    access: tuple[str, str], guest: Guest, machine: Path
) -> None:
    hcp("wait", "cluster", CLUSTER, "--timeout", "20m", *access)
    # Through the tunnel to the kubelet, whose serving certificate was approved for the address it has.
    log = eventually(lambda: guest.kubectl("logs", "-n", "kube-system", "daemonset/kube-proxy"), "a log", 300)
    assert log.strip()


def test_every_certificate_was_approved_because_the_machine_was_expected(guest: Guest, machine: Path) -> None:
    for request in guest.get("csr")["items"]:
        assert [c["type"] for c in request["status"]["conditions"]] == ["Approved"]
    assert guest.ready_nodes() == [NODE]


def test_the_end_of_the_cluster_leaves_nothing_here(
    management: Cluster, access: tuple[str, str], machine: Path
) -> None:
    hcp("destroy", "cluster", "none", "--name", CLUSTER, *access)
    assert HOSTED not in {n["metadata"]["name"] for n in management.get("namespaces")["items"]}
    left = [s["metadata"]["name"] for s in management.get("secrets", "-n", "hypershift")["items"]]
    assert not [name for name in left if name.startswith(f"ignition-{HOSTED}.")]
    eventually(lambda: services(management) == {"ignition-server"}, "the node port is closed")
    well(NAME)
