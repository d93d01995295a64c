"""Profile cluster on the real thing: everything a management cluster must be able to do for hosted clusters."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.e2e.local_tools import Cluster, hcp, namespace, open_url, server, service, well
from tests.support.eventually import eventually_sync

NAME = "e2e-cluster"
NS = "check"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    hcp("local", "up", "--name", NAME, "--profile", "cluster")
    try:
        found = Cluster(NAME, tmp_path_factory.mktemp("kubeconfig"))
        image = found.image()
        found.apply(
            namespace(NS),
            server(NS, "one", image),
            server(NS, "two", image),
            service(NS, "one"),
            service(NS, "two"),
        )
        found.wait_pods(NS, "one", "two")
        yield found
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


def pod_address(cluster: Cluster, pod: str) -> str:
    address: str = cluster.get("pod", pod, "-n", NS)["status"]["podIP"]
    return address


def test_everything_is_well(cluster: Cluster) -> None:
    status = well(NAME)
    names = {line["component"] for line in status["lines"]}
    assert {"etcd", "kube-apiserver", "kubelet", "kube-proxy", "containerd", "registry", "coredns"} <= names


def test_second_up_changes_nothing(cluster: Cluster) -> None:
    before = cluster.get("pods", "-A")
    assert "nothing had to be done" in hcp("local", "up", "--name", NAME).stdout
    after = cluster.get("pods", "-A")
    assert [p["metadata"]["uid"] for p in after["items"]] == [p["metadata"]["uid"] for p in before["items"]]


def test_nobody_gets_in_without_a_certificate(cluster: Cluster) -> None:
    import ssl

    server_url = _server(cluster)
    context = ssl._create_unverified_context()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server_url}/api", context=context, timeout=5)
    assert refused.value.code == 401
    node = server_url.rpartition(":")[0]
    with pytest.raises(urllib.error.HTTPError) as kubelet:
        urllib.request.urlopen(f"{node}:10250/pods", context=context, timeout=5)
    assert kubelet.value.code == 401


def _server(cluster: Cluster) -> str:
    import yaml

    found: str = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    return found


def blocked(cluster: Cluster, pod: str, url: str) -> None:
    eventually_sync(lambda: cluster.ask(NS, pod, url).startswith("failed"), f"blocking {url} for {pod}")


def answers(cluster: Cluster, pod: str, url: str, answer: str) -> None:
    eventually_sync(lambda: cluster.ask(NS, pod, url) == answer, f"{url} answering {pod}")


def test_network_policy_blocks_both_directions(cluster: Cluster) -> None:
    """By pod address and through the Service; and the other direction stays open until it is closed too."""
    one, two = pod_address(cluster, "one"), pod_address(cluster, "two")
    to_two = (f"http://{two}:8080", f"http://two.{NS}.svc.cluster.local")
    to_one = (f"http://{one}:8080", f"http://one.{NS}.svc.cluster.local")
    for url in to_two:
        assert cluster.ask(NS, "one", url) == "I am two"
    for url in to_one:
        assert cluster.ask(NS, "two", url) == "I am one"

    cluster.apply(_deny("ingress-two", "two", ["Ingress"]))
    for url in to_two:
        blocked(cluster, "one", url)
    for url in to_one:
        assert cluster.ask(NS, "two", url) == "I am one"

    cluster.apply(_deny("ingress-one", "one", ["Ingress"]))
    for url in to_one:
        blocked(cluster, "two", url)

    cluster.kubectl("delete", "networkpolicy", "--all", "-n", NS)
    for pod, urls, answer in (("one", to_two, "I am two"), ("two", to_one, "I am one")):
        for url in urls:
            answers(cluster, pod, url, answer)

    cluster.apply(_deny("egress-one", "one", ["Egress"], dns=True))
    for url in to_two:
        blocked(cluster, "one", url)
    for url in to_one:
        assert cluster.ask(NS, "two", url) == "I am one"
    cluster.kubectl("delete", "networkpolicy", "--all", "-n", NS)


def _deny(name: str, pod: str, kinds: list[str], *, dns: bool = False) -> dict[str, Any]:
    spec: dict[str, Any] = {"podSelector": {"matchLabels": {"app": pod}}, "policyTypes": kinds}
    if dns:
        spec["egress"] = [{"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": NS},
        "spec": spec,
    }


def test_volume_claim_binds_and_keeps_data(cluster: Cluster) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": NS},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }

    def pod(name: str) -> dict[str, Any]:
        return server(
            NS,
            name,
            cluster.image(),
            container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
            volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        )

    cluster.apply(claim, pod("writer"))
    cluster.wait_pods(NS, "writer")
    assert cluster.get("pvc", "data", "-n", NS)["status"]["phase"] == "Bound"
    cluster.kubectl("exec", "-n", NS, "writer", "--", "sh", "-c", "echo kept > /data/file")
    cluster.kubectl("delete", "pod", "writer", "-n", NS)
    cluster.apply(pod("reader"))
    cluster.wait_pods(NS, "reader")
    assert cluster.kubectl("exec", "-n", NS, "reader", "--", "cat", "/data/file").strip() == "kept"
    cluster.kubectl("delete", "pod/reader", "pvc/data", "-n", NS)


def test_load_balancer_answers(cluster: Cluster) -> None:
    cluster.apply(service(NS, "one", "LoadBalancer"), service(NS, "two", "LoadBalancer"))

    def address(name: str) -> str:
        ingress = cluster.get("service", name, "-n", NS)["status"]["loadBalancer"]["ingress"]
        found: str = ingress[0]["ip"]
        return found

    first = eventually_sync(lambda: address("one"), "an address for one")
    second = eventually_sync(lambda: address("two"), "an address for two")
    assert first != second
    eventually_sync(lambda: open_url(f"http://{first}") == "I am one", "the address answering on the machine")
    assert open_url(f"http://{second}") == "I am two"
    assert cluster.ask(NS, "one", f"http://{second}") == "I am two"
    cluster.apply(service(NS, "one"), service(NS, "two"))


def test_route_answers_by_host_name(cluster: Cluster) -> None:
    route = {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"name": "one", "namespace": NS},
        "spec": {"to": {"kind": "Service", "name": "one"}, "port": {"targetPort": "http"}},
    }
    cluster.apply(route)
    host = eventually_sync(lambda: cluster.get("route", "one", "-n", NS)["spec"].get("host"), "a host for the Route")
    domain = cluster.get("ingresses.config.openshift.io", "cluster")["spec"]["domain"]
    assert host.endswith(f".{domain}")
    address = ".".join(domain.removeprefix("apps.").partition(".")[0].split("-"))
    eventually_sync(lambda: open_url(f"http://{address}", host) == "I am one", "the Route answering on the machine")
    eventually_sync(
        lambda: cluster.ask(NS, "two", f"http://{host}") == "I am one", "the Route answering by name in a pod"
    )
    cluster.kubectl("delete", "route", "one", "-n", NS)


def test_image_is_pulled_by_digest(cluster: Cluster) -> None:
    """From the embedded registry over TLS, and its authority is published the way the guides do it."""
    image = cluster.image()
    assert image.startswith("registry.hcp.test:5000/hcp/")
    assert "@sha256:" in image
    pod = cluster.get("pod", "one", "-n", NS)
    assert pod["status"]["containerStatuses"][0]["imageID"].endswith(image.partition("@")[2])
    trust = cluster.get("images.config.openshift.io", "cluster")["spec"]["additionalTrustedCA"]["name"]
    data = cluster.get("configmap", trust, "-n", "openshift-config")["data"]
    assert "BEGIN CERTIFICATE" in data["registry.hcp.test..5000"]
    program = (
        "import ssl,sys,urllib.request as u\n"
        "c=ssl.create_default_context(cadata=sys.argv[1])\n"
        "print(u.urlopen('https://registry.hcp.test:5000/v2/hcp/router/tags/list', context=c).read().decode())"
    )
    said = cluster.kubectl("exec", "-n", NS, "one", "--", "python3", "-c", program, data["registry.hcp.test..5000"])
    assert json.loads(said)["name"] == "hcp/router"


def test_registry_takes_no_push_from_pods(cluster: Cluster) -> None:
    program = (
        "import ssl,urllib.request as u,urllib.error as e\n"
        "c=ssl._create_unverified_context()\n"
        "r=u.Request('https://registry.hcp.test:5000/v2/hcp/evil/blobs/uploads/', method='POST', data=b'')\n"
        "try: print(u.urlopen(r, context=c).status)\n"
        "except e.HTTPError as x: print(x.code)"
    )
    assert cluster.kubectl("exec", "-n", NS, "one", "--", "python3", "-c", program).strip() == "405"


def test_networks_are_published(cluster: Cluster) -> None:
    network = cluster.get("networks.config.openshift.io", "cluster")
    pod = pod_address(cluster, "one")
    cidr = network["spec"]["clusterNetwork"][0]["cidr"]
    import ipaddress

    assert ipaddress.ip_address(pod) in ipaddress.ip_network(cidr)
    dns = cluster.get("service", "kube-dns", "-n", "kube-system")["spec"]["clusterIP"]
    assert ipaddress.ip_address(dns) in ipaddress.ip_network(network["spec"]["serviceNetwork"][0])
    assert network["status"] == network["spec"]


def test_node_has_room_for_hundreds_of_pods(cluster: Cluster) -> None:
    (node,) = cluster.get("nodes")["items"]
    assert int(node["status"]["allocatable"]["pods"]) == 500
    assert int(Path("/proc/sys/fs/inotify/max_user_instances").read_text()) >= 8192


def test_crashed_process_comes_back(cluster: Cluster) -> None:
    import os
    import signal

    def line(component: str) -> dict[str, Any]:
        status = json.loads(hcp("local", "status", "--name", NAME, "-o", "json", check=False).stdout)
        found: dict[str, Any] = next(item for item in status["lines"] if item["component"] == component)
        return found

    before = line("kube-scheduler")
    os.kill(before["pid"], signal.SIGKILL)
    after = eventually_sync(
        lambda: line("kube-scheduler")["pid"] not in (0, before["pid"]) and line("kube-scheduler"), "a restart"
    )
    assert "1 restart" in after["health"]
    eventually_sync(lambda: line("kube-scheduler")["well"], "the scheduler being well again")
    assert hcp("local", "logs", "kube-scheduler", "--name", NAME).stdout.count("was killed by SIGKILL") == 1
