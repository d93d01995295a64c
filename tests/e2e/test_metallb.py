"""MetalLB on an embedded cluster (`--with metallb`), as the bare metal guide sets it up. Needs root, no machine.

The cluster begins without it: what has an address by then keeps it. Addresses of the guide's pool are answered on the
link between the machine and the node, by nobody but the speaker.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.e2e.control_planes import NS as CLUSTERS
from tests.support.e2e.control_planes import available, create, guest_of
from tests.support.e2e.local_tools import Cluster, hcp, namespace, server, service, well
from tests.support.eventually import eventually_sync
from tests.support.guides import documents

from hcp.api.names import ANNOTATION_LOAD_BALANCERS
from hcp.local.host import programs
from hcp.local.network.addresses import Addresses
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout

NAME = "e2e-metallb"
NS = "check"
METALLB = "metallb-system"
SHARED = "metallb.io/allow-shared-ip"
ECHO = (
    "import socket\n"
    "s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 5353))\n"
    "while True:\n"
    "    d, a = s.recvfrom(2000)\n"
    "    s.sendto(b'heard ' + d, a)\n"
)

pytestmark = pytest.mark.timeout(3000)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    hcp("local", "up", "--name", NAME, "--profile", "cluster")
    try:
        found = Cluster(NAME, tmp_path_factory.mktemp("kubeconfig"))
        image = found.image()
        echo = {"container": {"command": ["python3", "-c", ECHO], "ports": [], "readinessProbe": None}}
        found.apply(namespace(NS), server(NS, "web", image), server(NS, "talk", image, **echo))
        found.apply(service(NS, "before", "LoadBalancer"))
        eventually_sync(lambda: address(found, "before"), "an address of the embedded cluster's own")
        found.wait_pods(NS, "web", "talk")
        yield found
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


@pytest.fixture(scope="module")
def plan() -> Addresses:
    found = specs.load(Layout.of(NAME))
    assert found is not None
    return found.addresses


@pytest.fixture(scope="module")
def pools(cluster: Cluster, plan: Addresses) -> dict[str, str]:
    """The guide's documents with addresses of this cluster, and a second pool that is only for who names it."""
    begin = plan.announced.rpartition(".")[0]
    ranges = {"metallb": f"{begin}.130-{begin}.150", "second": f"{begin}.200-{begin}.203"}
    _, pool, advertisement = documents.metallb()
    cluster.kubectl("create", "-f", "-", stdin=documents.text({**pool, "spec": {"addresses": [ranges["metallb"]]}}))
    cluster.kubectl("create", "-f", "-", stdin=documents.text(advertisement))
    more = {"addresses": [ranges["second"]], "autoAssign": False}
    cluster.apply({**pool, "metadata": {**pool["metadata"], "name": "second"}, "spec": more})
    every = {**advertisement["metadata"], "name": "second"}
    cluster.apply({**advertisement, "metadata": every, "spec": {"ipAddressPools": ["second"]}})
    return ranges


def address(cluster: Cluster, name: str, ns: str = NS) -> str:
    status = cluster.get("service", name, "-n", ns)["status"]
    found = (status.get("loadBalancer") or {}).get("ingress") or []
    return str(found[0]["ip"]) if found else ""


def balanced(name: str, app: str, port: dict[str, Any], annotations: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NS, "annotations": annotations or {}},
        "spec": {"type": "LoadBalancer", "selector": {"app": app}, "ports": [port]},
    }


HTTP = {"port": 80, "targetPort": 8080}


def inside(text: str, range_: str) -> bool:
    begin, end = map(ipaddress.ip_address, range_.split("-"))
    return int(begin) <= int(ipaddress.ip_address(text)) <= int(end)


def curl(url: str) -> str:
    done = subprocess.run(
        ["curl", "-sS", "-m", "5", "--noproxy", "*", url], capture_output=True, text=True, check=False
    )
    return done.stdout or done.stderr


def neighbour(plan: Addresses, ip: str) -> str:
    """The hardware address the machine learned for an address of the link; empty when nobody answered."""
    words = [programs.ip(), "-j", "neigh", "show", ip, "dev", plan.link]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return next((str(one["lladdr"]) for one in json.loads(done.stdout or "[]") if "lladdr" in one), "")


def test_added_to_a_running_cluster_it_takes_nothing_away(cluster: Cluster, plan: Addresses) -> None:
    before, router = address(cluster, "before"), address(cluster, "router-default", "openshift-ingress")
    assert router == plan.router
    said = hcp("local", "up", "--name", NAME, "--with", "metallb").stdout
    assert plan.pool_range in said
    status = well(NAME)
    names = {line["component"] for line in status["lines"]}
    assert {"controller", "speaker"} <= names and "load-balancer" not in names

    def adopted(ns: str, name: str) -> bool:
        found = cluster.get("service", name, "-n", ns)["metadata"].get("annotations") or {}
        return bool(found.get("metallb.io/ip-allocated-from-pool") == "embedded")

    for ns, name, given in ((NS, "before", before), ("openshift-ingress", "router-default", router)):
        eventually_sync(lambda ns=ns, name=name: adopted(ns, name), f"{name} is MetalLB's now")  # type: ignore[misc]
        assert address(cluster, name, ns) == given
    assert "nothing had to be done" in hcp("local", "up", "--name", NAME).stdout


def test_without_a_pool_a_service_waits_and_doctor_says_why(cluster: Cluster) -> None:
    cluster.apply(balanced("web", "web", HTTP))

    def told() -> bool:
        events = cluster.get("events", "-n", NS)["items"]
        return any(e["reason"] == "AllocationFailed" and e["involvedObject"]["name"] == "web" for e in events)

    eventually_sync(told, "MetalLB says that it has no address")
    assert doctor(cluster)["state"] == "warning" and "no pool" in doctor(cluster)["message"]


def doctor(cluster: Cluster) -> dict[str, str]:
    done = hcp("doctor", "-o", "json", f"--kubeconfig={cluster.kubeconfig}", check=False)
    found: dict[str, str] = next(
        one for one in json.loads(done.stdout)["checks"] if one["check"] == "LoadBalancer addresses"
    )
    return found


def test_the_guides_pool_gives_an_address_that_answers(
    cluster: Cluster, plan: Addresses, pools: dict[str, str]
) -> None:
    found = eventually_sync(lambda: address(cluster, "web"), "an address")
    assert inside(found, pools["metallb"])
    eventually_sync(lambda: curl(f"http://{found}") == "I am web", "an answer on the machine")
    assert cluster.ask(NS, "web", f"http://{found}") == "I am web", "pods reach it too"
    assert neighbour(plan, found) == neighbour(plan, plan.node) != "", "the speaker answered for the node"
    [status] = [
        one["status"]
        for one in cluster.get("servicel2statuses", "-n", METALLB)["items"]
        if one["status"]["serviceName"] == "web"
    ]
    assert status["node"] == f"hcp-{NAME}"
    assert doctor(cluster)["state"] == "ok" and "metallb" in doctor(cluster)["message"]


def test_what_no_service_has_is_answered_by_nobody(plan: Addresses, pools: dict[str, str]) -> None:
    free = pools["metallb"].partition("-")[2]
    assert "I am" not in curl(f"http://{free}")
    assert not neighbour(plan, free)


def test_a_closed_port_refuses_at_once(cluster: Cluster, pools: dict[str, str]) -> None:
    found = address(cluster, "web")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((found, 81), 20)


def test_a_second_pool_by_annotation(cluster: Cluster, pools: dict[str, str]) -> None:
    cluster.apply(balanced("chosen", "web", HTTP, {"metallb.io/address-pool": "second"}))
    found = eventually_sync(lambda: address(cluster, "chosen"), "an address of the second pool")
    assert inside(found, pools["second"])
    eventually_sync(lambda: curl(f"http://{found}") == "I am web", "an answer")


def test_tcp_and_udp_share_an_address(cluster: Cluster, pools: dict[str, str]) -> None:
    udp = {"port": 80, "targetPort": 5353, "protocol": "UDP"}
    cluster.apply(balanced("both-tcp", "web", HTTP, {SHARED: "both"}))
    cluster.apply(balanced("both-udp", "talk", udp, {SHARED: "both"}))
    first = eventually_sync(lambda: address(cluster, "both-tcp"), "an address")
    # Which address it gets is MetalLB's choice: the one that is shared is asked for by name.
    asked = {SHARED: "both", "metallb.io/loadBalancerIPs": first}
    cluster.apply(balanced("both-udp", "talk", udp, asked))
    eventually_sync(lambda: address(cluster, "both-udp") == first, "the same address")
    eventually_sync(lambda: curl(f"http://{first}") == "I am web", "an answer by TCP")
    eventually_sync(lambda: ask_udp(first, 80) == b"heard hello", "an answer by UDP")
    # The same port a second time cannot be had there.
    cluster.apply(balanced("both-again", "web", HTTP, asked))

    def refused() -> bool:
        events = cluster.get("events", "-n", NS)["items"]
        return any(e["reason"] == "AllocationFailed" and e["involvedObject"]["name"] == "both-again" for e in events)

    eventually_sync(refused, "MetalLB refuses")
    assert not address(cluster, "both-again")


def ask_udp(ip: str, port: int) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.settimeout(3)
        sender.sendto(b"hello", (ip, port))
        return sender.recv(2000)


def test_an_overlapping_pool_is_refused_by_its_webhook(cluster: Cluster, plan: Addresses) -> None:
    pool = documents.metallb()[1]
    again = {**pool, "metadata": {**pool["metadata"], "name": "again"}, "spec": {"addresses": [plan.load_balancers]}}
    with pytest.raises(AssertionError, match="overlaps"):
        cluster.apply(again)


def test_a_deleted_service_is_not_answered_for_any_more(cluster: Cluster, plan: Addresses) -> None:
    found = address(cluster, "chosen")
    cluster.kubectl("delete", "service", "chosen", "-n", NS)
    subprocess.run([programs.ip(), "neigh", "flush", "dev", plan.link, found], check=False)

    def silent() -> bool:
        return "I am" not in curl(f"http://{found}") and not neighbour(plan, found)

    eventually_sync(silent, "silence")


def test_it_comes_back_with_the_cluster(cluster: Cluster) -> None:
    found = address(cluster, "web")
    hcp("local", "down", "--name", NAME)
    hcp("local", "up", "--name", NAME)
    cluster.wait_pods(NS, "web", "talk")
    assert address(cluster, "web") == found
    eventually_sync(lambda: curl(f"http://{found}") == "I am web", "an answer", 120)


def test_a_hosted_cluster_is_published_by_it(cluster: Cluster, pools: dict[str, str], tmp_path: Path) -> None:
    """What the guide wants it for; and Services inside the hosted cluster share an address as its owner says."""
    hcp("local", "push", "--name", NAME, "image-hcp", "release-1.36")
    hcp("install", "--kubeconfig", str(cluster.kubeconfig), "--wait-until-available")
    cluster.apply(namespace(CLUSTERS))
    create(cluster, tmp_path, "demo")
    available(cluster, "demo")
    endpoint = cluster.get("hostedcluster", "demo", "-n", CLUSTERS)["status"]["controlPlaneEndpoint"]
    assert inside(endpoint["host"], pools["metallb"])
    guest = guest_of(cluster, tmp_path, "demo")
    assert "kube-system" in {one["metadata"]["name"] for one in guest.get("namespaces")["items"]}

    owner = json.dumps({"metallb.io/address-pool": "second", SHARED: "demo"})
    cluster.kubectl("annotate", "hostedcluster", "demo", "-n", CLUSTERS, f"{ANNOTATION_LOAD_BALANCERS}={owner}")
    guest.kubectl("create", "service", "loadbalancer", "web", "--tcp=80:8080")
    udp = balanced("dns", "dns", {"port": 53, "protocol": "UDP"})
    guest.kubectl(
        "apply", "-f", "-", stdin=documents.text({**udp, "metadata": {"name": "dns", "namespace": "default"}})
    )

    def addresses() -> set[str]:
        return {guest.get("service", name)["status"]["loadBalancer"]["ingress"][0]["ip"] for name in ("web", "dns")}

    [shared] = eventually_sync(lambda: len(addresses()) == 1 and addresses(), "one address for both")
    assert inside(shared, pools["second"])
    cluster.kubectl("delete", "hostedcluster", "demo", "-n", CLUSTERS, seconds=300)
    used = [address(cluster, s["metadata"]["name"], s["metadata"]["namespace"]) for s in _balancers(cluster)]
    assert endpoint["host"] not in used and shared not in used


def _balancers(cluster: Cluster) -> list[dict[str, Any]]:
    return [one for one in cluster.get("services", "-A")["items"] if one["spec"].get("type") == "LoadBalancer"]
