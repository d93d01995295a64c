"""What a tenant's packets reach, from a pod of its cluster and from its machine itself, with real virtual machines.

Every target is first shown to answer somebody whom no policy holds: a pod of the management cluster, or where a target
lets no pod in, the node. Then it is tried from inside the tenant's cluster, from where the world outside answers in the
same time.
"""

from __future__ import annotations

import base64
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.e2e import packets
from tests.support.e2e.hosted_tools import Guest
from tests.support.e2e.local_tools import Cluster, hcp, namespace, server, service
from tests.support.e2e.world import ADDRESS, PORT, WEBHOOK, World, webhook_pem, world
from tests.support.eventually import eventually_sync

from hcp import pki

NAME = "e2e-packets"
PRIVATE = "private"
TENANT, OTHER = "tenant", "other"
ATTACKERS = ("inside", "beside")
WORLD = (ADDRESS, PORT)
COMPONENT = "hypershift.openshift.io/control-plane-component"

pytestmark = pytest.mark.timeout(5400)


@dataclass(frozen=True)
class Target:
    """An address; `lets_in` is whether pods of the management cluster are let in there, else the node is asked."""

    host: str
    port: int
    lets_in: bool = True

    @property
    def asker(self) -> str:
        return "friend" if self.lets_in else "metadata"


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("packets")
    hcp("local", "up", "--name", NAME, "--profile", "kubevirt")
    try:
        hcp("local", "push", "--name", NAME, "image-hcp", "release-1.36")
        found = Cluster(NAME, folder)
        access = ("--kubeconfig", str(found.kubeconfig))
        hcp("install", *access, "--wait-until-available")
        image = found.image()
        powers = {"securityContext": {"runAsUser": 0, "capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}}}
        found.apply(namespace(PRIVATE))
        found.apply(*(server(PRIVATE, name, image, container=powers) for name in ("victim", "friend")))
        found.apply(packets.metadata_listener(PRIVATE, image))
        found.wait_pods(PRIVATE, "victim", "friend", "metadata")
        secret = folder / "pull-secret.json"
        secret.write_text('{"auths": {}}')
        for name in (TENANT, OTHER):
            hcp(
                *("create", "cluster", "kubevirt", "--name", name, "--pull-secret", str(secret), *access),
                *("--node-pool-replicas", "1", "--memory", "2Gi", "--cores", "1", "--root-volume-size", "16"),
                *("--control-plane-availability-policy", "SingleReplica"),
            )
        for name in (TENANT, OTHER):
            hcp("wait", "nodepool", name, "--timeout", "25m", *access)
        yield found
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("world")) as found:
        yield found


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    """The tenant's cluster with two attackers: a pod, and a pod that is the machine itself as far as networks go."""
    path = management.kubeconfig.with_name("tenant.kubeconfig")
    path.write_text(hcp("create", "kubeconfig", "--name", TENANT, "--kubeconfig", str(management.kubeconfig)).stdout)
    found = Guest(management, path)
    image = management.image()
    powers = {"securityContext": {"runAsUser": 0, "privileged": True}}
    inside = server("default", "inside", image, container=powers)
    beside = server("default", "beside", image, container=powers, hostNetwork=True)
    found.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([inside, beside]))
    for name in ATTACKERS:
        found.kubectl("wait", "--for=condition=Ready", "--timeout=1200s", f"pod/{name}", seconds=1300)
    return found


def node_address(management: Cluster) -> str:
    [node] = management.get("nodes")["items"]
    found: str = next(a["address"] for a in node["status"]["addresses"] if a["type"] == "InternalIP")
    return found


def pod_address(management: Cluster, ns: str, selector: str) -> str:
    items = management.get("pods", "-n", ns, "-l", selector)["items"]
    running = [item for item in items if item["status"]["phase"] == "Running"]
    found: str = running[0]["status"]["podIP"]
    return found


def targets(management: Cluster) -> dict[str, Target]:
    node, mine, other = node_address(management), f"clusters-{TENANT}", f"clusters-{OTHER}"
    balancer = management.get("service", "kube-apiserver", "-n", other)["status"]["loadBalancer"]["ingress"][0]["ip"]
    return {
        "management API": Target(node, 6443),
        "management API by its Service": Target(management.get("service", "kubernetes")["spec"]["clusterIP"], 443),
        "kubelet of the management node": Target(node, 10250),
        "a pod": Target(pod_address(management, PRIVATE, "app=victim"), 8080),
        "own etcd": Target(pod_address(management, mine, f"{COMPONENT}=etcd"), 2379, lets_in=False),
        "etcd of others": Target(pod_address(management, other, f"{COMPONENT}=etcd"), 2379, lets_in=False),
        "API of others": Target(pod_address(management, other, f"{COMPONENT}=kube-apiserver"), 6443),
        "published API of others": Target(balancer, 6443),
        "machine of others": Target(pod_address(management, other, "kubevirt.io=virt-launcher"), 10250),
        "virt-handler": Target(pod_address(management, "kubevirt", "kubevirt.io=virt-handler"), 8443),
        "virt-api": Target(pod_address(management, "kubevirt", "kubevirt.io=virt-api"), 8443),
        "operator": Target(pod_address(management, "hypershift", "name=operator"), 9000, lets_in=False),
        "Cluster API": Target(pod_address(management, "hypershift", "app=cluster-api"), 9440, lets_in=False),
        "metadata": Target(packets.METADATA, 80),
    }


def test_nothing_of_the_management_cluster_or_of_others_answers(
    management: Cluster, guest: Guest, outside: World
) -> None:
    wrong = []
    for what, target in targets(management).items():
        place = (target.host, target.port)
        if not packets.answers(management, PRIVATE, target.asker, *place):
            wrong.append(f"{what} at {target.host}:{target.port} does not answer at all")
        for attacker in ATTACKERS:
            if not packets.kept_off(guest, "default", attacker, place, WORLD):
                wrong.append(f"{what} at {target.host}:{target.port} answers {attacker}")
    assert not wrong, "\n".join(wrong)


def test_a_load_balancer_address_is_no_door_to_the_node(management: Cluster, guest: Guest, outside: World) -> None:
    """First a Service has the address, so that it is shown to lead to the node; then nobody has it."""
    address = f"{node_address(management).rpartition('.')[0]}.126"
    door = service(PRIVATE, "victim", "LoadBalancer")
    door["spec"] |= {"loadBalancerIP": address, "ports": [{"port": 6443, "targetPort": 8080}]}
    management.apply(door)
    assert packets.answers(management, PRIVATE, "friend", address, 6443)
    management.kubectl("delete", "service", "victim", "-n", PRIVATE)
    eventually_sync(lambda: packets.closed(management, PRIVATE, "friend", address, 6443), "nobody has the address")
    for port in (6443, 10250):
        assert packets.answers(management, PRIVATE, "metadata", node_address(management), port)
        for attacker in ATTACKERS:
            assert packets.kept_off(guest, "default", attacker, (address, port), WORLD)


def test_the_machine_under_the_cluster_does_not_answer(management: Cluster, guest: Guest, outside: World) -> None:
    machine = f"{node_address(management).rpartition('.')[0]}.1"
    listener = http.server.ThreadingHTTPServer((machine, 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    port = int(listener.server_address[1])
    try:
        assert not packets.closed_here(machine, port)
        for attacker in ATTACKERS:
            assert packets.kept_off(guest, "default", attacker, (machine, port), WORLD)
    finally:
        listener.shutdown()
        listener.server_close()


def test_the_registry_is_read_and_not_written(management: Cluster, guest: Guest) -> None:
    registry, upload = "https://registry.hcp.test:5000", "/v2/hcp/hcp/blobs/uploads/"
    for attacker in ATTACKERS:
        assert answer_of(guest, attacker, f"{registry}/v2/") == "200"
        assert answer_of(guest, attacker, f"{registry}{upload}", "POST") == "405"


def answer_of(guest: Guest, attacker: str, url: str, method: str = "GET") -> str:
    """The status of an answer, however long it takes: none at all would show nothing."""

    def asked() -> str:
        said = packets.ask_from(guest, "default", attacker, url, method)
        return "" if said.startswith("failed") else said

    found: str = eventually_sync(asked, f"{attacker} gets an answer of {url}", 120)
    return found


def test_what_a_tenant_needs_is_there(guest: Guest, outside: World) -> None:
    own = yaml.safe_load(guest.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    host, _, port = own.removeprefix("https://").rpartition(":")
    for attacker in ATTACKERS:
        assert packets.answers(guest, "default", attacker, host, int(port))
        assert packets.answers(guest, "default", attacker, ADDRESS, PORT)


def test_another_source_address_leads_nowhere(management: Cluster, guest: Guest, outside: World) -> None:
    victim = pod_address(management, PRIVATE, "app=victim")
    friend = pod_address(management, PRIVATE, "app=friend")
    link = packets.default_link(guest, "default", "beside")
    packets.datagram(guest, "default", "beside", WORLD, "honest")
    eventually_sync(lambda: "honest" in outside.heard, "a datagram with the machine's own address")
    with packets.heard(management, PRIVATE, "victim", 9000) as ears:
        for source, word in ((friend, "friendly"), (f"{victim.rsplit('.', 2)[0]}.251.251", "stolen")):
            packets.take_address(guest, "default", "beside", source, link)
            for to in ((victim, 9000), WORLD):
                packets.datagram(guest, "default", "beside", to, word, source=source)
            packets.claim_by_arp(guest, "default", "beside", source, link)
        # What came later than the attack shows that the attack would have come.
        packets.datagram(management, PRIVATE, "friend", (victim, 9000), "last")
        eventually_sync(lambda: "last" in ears(), "a datagram of the friend whose address was taken")
        assert ears() == {"last"}
    packets.datagram(guest, "default", "beside", WORLD, "honest-again")
    eventually_sync(lambda: "honest-again" in outside.heard, "another datagram with the machine's own address")
    assert outside.heard == {"honest", "honest-again"}
    assert management.ask(PRIVATE, "victim", f"http://{friend}:8080", 20) == "I am friend"


def test_nobody_is_on_the_same_wire(management: Cluster, guest: Guest) -> None:
    """Root in the machine asks all link-local neighbours; only what belongs to its own pod may answer."""
    others: set[str] = set()
    for pod in ("victim", "friend"):
        there = packets.speak_ipv6(management, PRIVATE, pod, "eth0")
        assert there in packets.neighbours(management, PRIVATE, pod, "eth0"), f"{pod} answers nobody, not even itself"
        others.add(there)
    link = packets.default_link(guest, "default", "beside")
    here = packets.speak_ipv6(guest, "default", "beside", link)
    ns = f"clusters-{TENANT}"
    [launcher] = management.get("pods", "-n", ns, "-l", "kubevirt.io=virt-launcher")["items"]
    own = packets.link_locals(management, ns, launcher["metadata"]["name"])
    own |= packets.link_locals(guest, "default", "beside")
    assert here in own and not others & own
    answered = packets.neighbours(guest, "default", "beside", link)
    assert here in answered, "the question was not even heard on the machine's own link"
    assert answered <= own, answered
    with packets.heard(management, PRIVATE, "victim", 9001, family=6) as ears:
        victim = packets.speak_ipv6(management, PRIVATE, "victim", "eth0")
        packets.datagram(management, PRIVATE, "victim", (victim, 9001), "myself")
        eventually_sync(lambda: "myself" in ears(), "the victim hears itself")
        for target in (victim, "ff02::1"):
            packets.datagram(guest, "default", "beside", (target, 9001), "neighbour", link=link)
        packets.datagram(management, PRIVATE, "victim", (victim, 9001), "last")
        eventually_sync(lambda: "last" in ears(), "the victim hears itself again")
        assert ears() == {"myself", "last"}


def test_a_webhook_by_service_is_called_through_konnectivity(guest: Guest, management: Cluster, tmp_path: Path) -> None:
    ca = pki.new_ca("webhooks")
    pem = webhook_pem(ca, dns=("hook.default.svc",))
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "hook", "namespace": "default"},
        "data": {"tls.pem": base64.b64encode(pem).decode()},
    }
    pod = server("default", "hook", management.image(), volumes=[{"name": "tls", "secret": {"secretName": "hook"}}])
    container = pod["spec"]["containers"][0]
    container["command"] = ["python3", "-c", WEBHOOK, "/tls/tls.pem", "8080"]
    container["volumeMounts"] = [{"name": "tls", "mountPath": "/tls"}]
    port = {"port": 443, "targetPort": 8080}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "hook", "namespace": "default"},
        "spec": {"selector": {"app": "hook"}, "ports": [port]},
    }
    guest.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([secret, pod, service, _hook(ca.cert_pem)]))
    guest.kubectl("wait", "--for=condition=Ready", "--timeout=900s", "pod/hook", seconds=920)
    config: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "hooked-"}}

    def called() -> bool:
        guest.kubectl("create", "-n", "default", "-f", "-", stdin=yaml.safe_dump(config))
        return "called" in guest.kubectl("logs", "hook")

    eventually_sync(called, "a call through konnectivity", 300)


def _hook(ca: bytes) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [
            {
                "name": "hook.example.com",
                "clientConfig": {
                    "service": {"name": "hook", "namespace": "default"},
                    "caBundle": base64.b64encode(ca).decode(),
                },
                "rules": [rule],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 10,
            }
        ],
    }
