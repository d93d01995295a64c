"""A pod with every right in its own network namespace, as root in a virtual machine has it, tries to be somebody else.

Each way is shown to be open where it should be (the target answers those who may ask), then tried by the attacker.
"""

from __future__ import annotations

import http.server
import json
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.e2e.local_tools import Cluster, hcp, namespace, server
from tests.support.e2e.packets import ask_from, claim_by_arp, closed, datagram, heard, link_locals, take_address
from tests.support.eventually import eventually_sync

NAME = "e2e-spoof"
NS = "wire"


def _pod(name: str, image: str) -> dict[str, Any]:
    powers = {"runAsUser": 0, "capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}}
    return server(NS, name, image, container={"securityContext": powers})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    hcp("local", "up", "--name", NAME, "--profile", "cluster")
    try:
        found = Cluster(NAME, tmp_path_factory.mktemp("kubeconfig"))
        pods = ("victim", "attacker", "friend")
        found.apply(namespace(NS), *(_pod(name, found.image()) for name in pods))
        found.wait_pods(NS, *pods)
        yield found
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


def address(cluster: Cluster, pod: str) -> str:
    found: str = cluster.get("pod", pod, "-n", NS)["status"]["podIP"]
    return found


def node_address(cluster: Cluster) -> str:
    [node] = cluster.get("nodes")["items"]
    found: str = next(a["address"] for a in node["status"]["addresses"] if a["type"] == "InternalIP")
    return found


def foreign(cluster: Cluster) -> str:
    """An address of the pod network that no pod has."""
    head = address(cluster, "attacker").rsplit(".", 2)[0]
    return f"{head}.251.251"


def test_another_source_address_does_not_leave_an_egress_policy(cluster: Cluster) -> None:
    victim = address(cluster, "victim")
    with heard(cluster, NS, "victim", 9000) as ears:
        datagram(cluster, NS, "attacker", (victim, 9000), "open")
        eventually_sync(lambda: "open" in ears(), "a datagram without a policy")
        cluster.apply(_no_egress("attacker"))
        eventually_sync(lambda: cluster.ask(NS, "attacker", f"http://{victim}:8080").startswith("failed"), "the policy")
        for source, word in ((foreign(cluster), "stolen"), (address(cluster, "friend"), "friendly")):
            take_address(cluster, NS, "attacker", source)
            datagram(cluster, NS, "attacker", (victim, 9000), word, source=source)
        # What came later than the attack shows that the attack would have come.
        datagram(cluster, NS, "friend", (victim, 9000), "last")
        eventually_sync(lambda: "last" in ears(), "a datagram of a friend")
        assert sorted(ears()) == ["last", "open"]
    cluster.kubectl("delete", "networkpolicy", "--all", "-n", NS)


def _no_egress(pod: str) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": f"no-egress-{pod}", "namespace": NS},
        "spec": {"podSelector": {"matchLabels": {"app": pod}}, "policyTypes": ["Egress"]},
    }


def test_link_local_addresses_of_others_do_not_answer(cluster: Cluster) -> None:
    """No NetworkPolicy covers them, so nobody else may be on the same wire."""
    with heard(cluster, NS, "victim", 9001, family=6) as ears:
        [own] = eventually_sync(lambda: link_locals(cluster, NS, "victim"), "a link-local address of the victim")
        datagram(cluster, NS, "victim", (own, 9001), "myself")
        eventually_sync(lambda: "myself" in ears(), "the victim hears itself")
        for target in (own, "ff02::1"):
            datagram(cluster, NS, "attacker", (target, 9001), "neighbour")
        datagram(cluster, NS, "victim", (own, 9001), "last")
        eventually_sync(lambda: "last" in ears(), "the victim hears itself again")
        assert sorted(ears()) == ["last", "myself"]


def test_an_address_cannot_be_taken_over_by_arp(cluster: Cluster) -> None:
    victim = address(cluster, "victim")
    assert cluster.ask(NS, "friend", f"http://{victim}:8080") == "I am victim"
    take_address(cluster, NS, "attacker", victim)
    assert cluster.ask(NS, "attacker", f"http://{victim}:8080") == "I am attacker"  # it would answer
    for _ in range(10):
        claim_by_arp(cluster, NS, "attacker", victim)
        assert cluster.ask(NS, "friend", f"http://{victim}:8080") == "I am victim"


def test_a_free_load_balancer_address_is_no_door_to_the_node(cluster: Cluster) -> None:
    node = node_address(cluster)
    head = node.rpartition(".")[0]
    assert ask_from(cluster, NS, "friend", f"https://{node}:6443/version") == "401"
    for host in (f"{head}.126", f"{head}.3"):
        assert closed(cluster, NS, "friend", host, 6443)
        assert closed(cluster, NS, "friend", host, 10250)
    assert ask_from(cluster, NS, "friend", f"https://{head}.3:5000/v2/") == "200"


def test_the_machine_itself_does_not_answer_pods(cluster: Cluster) -> None:
    """A listener of ours on the machine: it answers on the machine and refuses what comes from the cluster."""
    machine = f"{node_address(cluster).rpartition('.')[0]}.1"
    listener = http.server.ThreadingHTTPServer((machine, 0), _Answer)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    port = listener.server_address[1]
    try:
        with urllib.request.urlopen(f"http://{machine}:{port}/", timeout=5) as answer:
            assert json.loads(answer.read()) == "the machine"
        assert closed(cluster, NS, "friend", machine, int(port))
    finally:
        listener.shutdown()


class _Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'"the machine"'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""
