"""The whole way once: a management cluster, the operator from its image, a hosted cluster with two nodes, a workload,
scaling, removal, and nothing left. Every step is what a person would type. Each test builds on the one before."""

from __future__ import annotations

import functools
import itertools
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.e2e.hosted_tools import Guest
from tests.support.e2e.local_tools import HCP, Cluster, hcp, well
from tests.support.eventually import eventually_sync

NAME = "smoke"
CLUSTER = "demo"
CONTROL_PLANE = f"clusters-{CLUSTER}"

pytestmark = pytest.mark.timeout(3000)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("smoke")
    hcp("local", "up", "--name", NAME, "--profile", "kubevirt")
    try:
        hcp("local", "push", "--name", NAME, "image-hcp", "release-1.36")
        yield Cluster(NAME, folder)
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


@pytest.fixture(scope="module")
def access(management: Cluster) -> tuple[str, str]:
    return ("--kubeconfig", str(management.kubeconfig))


@pytest.fixture(scope="module")
def guest(management: Cluster, access: tuple[str, str]) -> Guest:
    path = management.kubeconfig.with_name("guest.kubeconfig")
    path.write_text(hcp("create", "kubeconfig", "--name", CLUSTER, *access).stdout)
    return Guest(management, path)


def test_operator_runs_from_its_image(management: Cluster, access: tuple[str, str]) -> None:
    hcp("install", *access, "--wait-until-available")
    deployment = management.get("deployment", "operator", "-n", "hypershift")
    assert "@sha256:" in deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    assert deployment["status"]["availableReplicas"] >= 1


def test_hosted_control_plane_becomes_available(management: Cluster, access: tuple[str, str], tmp_path: Path) -> None:
    secret = tmp_path / "pull-secret.json"
    secret.write_text('{"auths": {}}')
    hcp(
        *("create", "cluster", "kubevirt", "--name", CLUSTER, "--pull-secret", str(secret), *access),
        *("--node-pool-replicas", "2", "--memory", "2Gi", "--cores", "1", "--root-volume-size", "16"),
        *("--control-plane-availability-policy", "SingleReplica"),
    )
    hcp("wait", "cluster", CLUSTER, "--control-plane", "--timeout", "10m", *access)
    pods = management.get("pods", "-n", CONTROL_PLANE, "-l", "hypershift.openshift.io/hosted-control-plane")["items"]
    assert 0 < len(pods) <= 5


def test_hosted_api_answers_from_outside(guest: Guest) -> None:
    names = {item["metadata"]["name"] for item in guest.get("namespaces")["items"]}
    assert {"default", "kube-system"} <= names


def test_two_virtual_machines_become_ready_nodes(guest: Guest, access: tuple[str, str]) -> None:
    hcp("wait", "nodepool", CLUSTER, "--timeout", "25m", *access)
    assert len(guest.ready_nodes()) == 2


def test_pods_on_both_nodes_serve_through_a_load_balancer(guest: Guest) -> None:
    guest.run_web("hello", replicas=2)
    nodes = {pod["spec"]["nodeName"] for pod in guest.get("pods", "-l", "app=hello")["items"]}
    assert len(nodes) == 2
    address = eventually_sync(lambda: guest.load_balancer("hello"), "a load balancer address", 120)

    def names() -> set[str]:
        found = set()
        for _ in range(20):
            with urllib.request.urlopen(f"http://{address}:8080/hostname", timeout=5) as answer:
                found.add(answer.read().decode().strip())
        return found

    assert len(eventually_sync(lambda: len(names()) == 2 and names(), "answers from both pods", 180)) == 2


def test_logs_and_exec_reach_the_nodes(guest: Guest) -> None:
    pod = guest.get("pods", "-l", "app=hello")["items"][0]["metadata"]["name"]
    assert guest.kubectl("exec", pod, "--", "hostname").strip() == pod
    assert "/hostname" in guest.kubectl("logs", pod)


def test_a_nodes_serial_console_shows_what_its_machine_writes(guest: Guest, access: tuple[str, str]) -> None:
    node = guest.ready_nodes()[0]
    with guest.as_root_on(node, f"while sleep 1; do echo this is {node} > /dev/ttyS0; done"):
        eventually_sync(lambda: f"this is {node}" in _console(node, access), "the console of the machine", 180)


def _console(node: str, access: tuple[str, str]) -> str:
    """The first lines; nothing where the machine is silent for a while."""
    command = [str(HCP), "vm", "console", node, *access]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            return "".join(itertools.islice(running.stdout, 3))
        finally:
            running.terminate()


def test_services_and_dns_work_inside(guest: Guest, access: tuple[str, str]) -> None:
    hcp("wait", "cluster", CLUSTER, "--timeout", "10m", *access)  # nodes come first, DNS runs on them
    pod = guest.get("pods", "-l", "app=hello")["items"][0]["metadata"]["name"]
    for name in ("hello", "kubernetes"):
        eventually_sync(functools.partial(_dns_answers, guest, pod, name), f"DNS answers for {name}", 180)
    address = guest.get("service", "kubernetes")["spec"]["clusterIP"]
    hello = guest.get("service", "hello")["spec"]["clusterIP"]
    said = guest.kubectl("exec", pod, "--", "wget", "-qO-", f"http://{hello}:8080/hostname")
    assert said.startswith("hello-")
    guest.kubectl("exec", pod, "--", "sh", "-c", f"nc -w 10 {address} 443 < /dev/null")  # fails where nobody listens


def test_services_stay_when_a_node_compares_all_its_rules(guest: Guest) -> None:
    """kube-proxy does it every hour, and when the zone of its node changes."""
    pod = guest.get("pods", "-l", "app=hello")["items"][0]
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    proxies = guest.get("pods", "-n", "kube-system", "-l", "k8s-app=kube-proxy")["items"]
    (proxy,) = [one["metadata"]["name"] for one in proxies if one["spec"]["nodeName"] == node]
    ask = ("exec", "-n", "kube-system", proxy, "--", "wget", "-qO-", "http://127.0.0.1:10249/metrics")

    def compared() -> float:
        counted = re.search(
            r"^kubeproxy_sync_full_proxy_rules_duration_seconds_count.* (\S+)$", guest.kubectl(*ask), re.M
        )
        assert counted, "kube-proxy counts how often it compared all its rules"
        return float(counted[1])

    before = compared()
    guest.kubectl("label", "node", node, "topology.kubernetes.io/zone=another", "--overwrite")
    eventually_sync(lambda: compared() > before, "all rules are compared", 180)
    address = guest.get("service", "hello")["spec"]["clusterIP"]
    said = guest.kubectl("exec", name, "--", "wget", "-qO-", f"http://{address}:8080/hostname")
    assert said.startswith("hello-")


def test_the_cluster_tells_its_version_and_its_parts(guest: Guest) -> None:
    def told() -> bool:
        entry = guest.get("clusterversion", "version")["status"]["history"][0]
        parts = {one["metadata"]["name"]: one["status"]["conditions"] for one in guest.get("co")["items"]}
        control_plane = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
        assert {"dns", "network", *control_plane} == set(parts)
        wanted = {"Available": "True", "Progressing": "False", "Degraded": "False", "Upgradeable": "True"}
        well = all({one["type"]: one["status"] for one in said} == wanted for said in parts.values())
        return bool(entry["state"] == "Completed" and well)

    eventually_sync(told, "the version is reached and every part is well", 300)


def _dns_answers(guest: Guest, pod: str, service: str) -> bool:
    address = guest.get("service", service)["spec"]["clusterIP"]
    # busybox asks the DNS server itself here; its other commands need libraries this image does not have.
    return address in guest.kubectl("exec", pod, "--", "busybox", "nslookup", f"{service}.default.svc.cluster.local")


def test_scaling_down_removes_a_node_and_its_machine(
    guest: Guest, management: Cluster, access: tuple[str, str]
) -> None:
    hcp("scale", "nodepool", CLUSTER, "--replicas", "1", *access)
    eventually_sync(lambda: len(guest.get("nodes")["items"]) == 1, "one node left", 300)
    eventually_sync(lambda: len(management.get("vm", "-n", CONTROL_PLANE)["items"]) == 1, "one machine left", 300)
    # It was asked to shut down and did. A machine that is deaf to that is ended by force when its grace period is over,
    # which KubeVirt tells as "stopping"; "crashed" is also its last word on one that went well, if it looks late.
    told = eventually_sync(lambda: _end(management), "how it ended", 300)
    assert "Signaled Graceful Shutdown" in told and "VirtualMachineInstance stopping" not in told


def _end(management: Cluster) -> list[str]:
    """What was said of the machine that has ended; nothing as long as it has not."""
    events = management.get("events", "-n", CONTROL_PLANE)["items"]
    ours = [e for e in events if e["involvedObject"]["kind"] == "VirtualMachineInstance"]
    [name] = {e["involvedObject"]["name"] for e in ours if e["reason"] == "Stopped"} or {""}
    return [e["message"] for e in ours if e["involvedObject"]["name"] == name]


def test_destroy_leaves_nothing(management: Cluster, access: tuple[str, str]) -> None:
    hcp("destroy", "cluster", "kubevirt", "--name", CLUSTER, *access)
    eventually_sync(lambda: not _namespaces(management, CONTROL_PLANE), "the hosted namespace is gone", 300)
    assert not management.get("hostedclusters,nodepools", "-A")["items"]

    def no_volumes() -> bool:
        left = [item for item in _owned(management, "pv") if item["status"]["phase"] == "Bound"]
        return not [item for item in left if item["spec"]["claimRef"]["namespace"] == CONTROL_PLANE]

    eventually_sync(no_volumes, "its volumes are let go of", 300)


def _namespaces(management: Cluster, name: str) -> list[Any]:
    return [item for item in management.get("namespaces")["items"] if item["metadata"]["name"] == name]


def _owned(management: Cluster, kind: str) -> list[Any]:
    items: list[Any] = management.get(kind)["items"]
    return items


def test_management_cluster_is_still_well(management: Cluster) -> None:
    well(NAME)
