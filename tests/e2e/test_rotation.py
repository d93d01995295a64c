"""New certificate authorities for a cluster with a real node: the node stays, and nobody who asks is refused."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.e2e.hosted_tools import Guest, with_one_node
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync

NAME = "rotation"
CLUSTER = "keys"
HOSTED = f"clusters-{CLUSTER}"

pytestmark = pytest.mark.timeout(5400)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_one_node(NAME, CLUSTER, tmp_path_factory.mktemp("rotation")) as made:
        yield made


def access(management: Cluster) -> tuple[str, str]:
    return ("--kubeconfig", str(management.kubeconfig))


def fetched(management: Cluster, name: str) -> Guest:
    path = management.kubeconfig.with_name(f"{name}.kubeconfig")
    path.write_text(hcp("create", "kubeconfig", "--name", CLUSTER, *access(management)).stdout)
    return Guest(management, path)


def stage(management: Cluster, authority: str) -> str:
    notes = management.get("secret", authority, "-n", HOSTED)["metadata"].get("annotations") or {}
    return str(notes.get("hypershift.openshift.io/rotation-stage", ""))


def certificate(management: Cluster, authority: str) -> str:
    found: str = management.get("secret", authority, "-n", HOSTED)["data"]["ca.crt"]
    return found


def identity(guest: Guest, management: Cluster) -> dict[str, Any]:
    """What would change if a node or its machine were replaced."""
    return {
        "nodes": sorted((n["metadata"]["name"], n["metadata"]["uid"]) for n in guest.get("nodes")["items"]),
        "machines": sorted(
            (vm["metadata"]["name"], vm["metadata"]["uid"]) for vm in management.get("vmi", "-n", HOSTED)["items"]
        ),
    }


class Caller(threading.Thread):
    """Asks all the time with one kubeconfig and counts who refuses it."""

    def __init__(self, kubectl: Path, kubeconfig: Path) -> None:
        super().__init__(daemon=True)
        self._command = [str(kubectl), f"--kubeconfig={kubeconfig}", "get", "--raw", "/api/v1/namespaces/default"]
        self._ended = threading.Event()
        self.answered = 0
        self.other: list[str] = []
        self.refused: list[str] = []

    def run(self) -> None:
        while not self._ended.is_set():
            done = subprocess.run(self._command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                self.answered += 1
            elif "certificate" in done.stderr or "Unauthorized" in done.stderr or "logged in" in done.stderr:
                self.refused.append(done.stderr)
            else:
                self.other.append(done.stderr)
            self._ended.wait(0.3)

    def stop(self) -> None:
        self._ended.set()
        self.join()


def test_every_authority_changes_and_the_node_stays(management: Cluster) -> None:
    old = fetched(management, "old")
    before = identity(old, management)
    authorities = ("root-ca", "etcd-signer", "kube-apiserver-to-kubelet-signer", "system-admin-signer", "hcco-signer")
    certificates = {name: certificate(management, name) for name in authorities}
    hcp("rotate", "cluster", CLUSTER, "--overlap", "90s", *access(management))
    eventually_sync(
        lambda: (
            stage(management, "system-admin-signer") == "Reissuing" and stage(management, "root-ca") == "Distributing"
        ),
        "the signers have changed and both roots are known",
        900,
    )
    eventually_sync(lambda: fetched(management, "new").kubectl("get", "nodes") != "", "the new kubeconfig works", 120)
    caller = Caller(management.kubectl_binary, fetched(management, "new").kubeconfig)
    caller.start()
    try:
        words = ("rotate", "cluster", CLUSTER, "--status", *access(management))
        eventually_sync(lambda: "as asked for" in hcp(*words).stdout, "everything is done", 1800)
    finally:
        caller.stop()
    print(f"answered {caller.answered}, refused {len(caller.refused)}, else {len(caller.other)}: {caller.other[:3]}")
    assert caller.refused == []
    assert caller.answered > 100
    for name, known in certificates.items():
        assert certificate(management, name) != known, name
    guest = fetched(management, "last")
    # The same node, still reporting, with its logs reachable through the tunnel; and nothing is left behind on it.
    assert identity(guest, management) == before
    eventually_sync(lambda: len(guest.ready_nodes()) == 1, "the node is ready", 300)
    pod = guest.get("pods", "-n", "kube-system", "-l", "k8s-app=kube-proxy")["items"][0]["metadata"]["name"]
    eventually_sync(
        lambda: guest.kubectl("logs", "-n", "kube-system", pod, "--tail=1") is not None, "logs are readable", 300
    )
    assert "node-trust" not in guest.kubectl("get", "daemonsets", "-n", "kube-system", "-o", "name")
    with pytest.raises(AssertionError, match="certificate"):
        old.kubectl("get", "nodes")
    # New pods start, so the kubelet still reads from the API and writes to it.
    image = guest.get("daemonset", "kube-proxy", "-n", "kube-system")["spec"]["template"]["spec"]["containers"][0][
        "image"
    ]
    guest.kubectl("run", "after", f"--image={image}", "--restart=Never", "--command", "--", "true")
    eventually_sync(lambda: guest.get("pod", "after")["status"]["phase"] == "Succeeded", "a new pod ran", 300)


def test_a_revoked_kubeconfig_is_refused(management: Cluster) -> None:
    stolen = fetched(management, "stolen")
    assert stolen.kubectl("get", "nodes")
    hcp("rotate", "kubeconfig", CLUSTER, *access(management), "--timeout", "10m")
    with pytest.raises(AssertionError, match=r"logged in|Unauthorized|credentials"):
        stolen.kubectl("get", "nodes")
    assert fetched(management, "fresh").kubectl("get", "nodes")
