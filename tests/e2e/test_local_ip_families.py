"""Embedded clusters with IPv6, beside IPv4 and alone: pods, Services, Routes, policies, control planes."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.e2e.control_planes import NS, available, create, guest_of
from tests.support.e2e.local_tools import Cluster, hcp, namespace, open_url, server, service, well
from tests.support.eventually import eventually_sync

from hcp.api.addresses import in_url

HERE = "check"
VERSIONS = {"dual": [4, 6], "ipv6": [6]}

pytestmark = pytest.mark.timeout(3000)


@dataclass(frozen=True)
class Made:
    family: str
    cluster: Cluster

    @property
    def versions(self) -> list[int]:
        return VERSIONS[self.family]

    @property
    def name(self) -> str:
        return self.cluster.name


@pytest.fixture(scope="module", params=["dual", "ipv6"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    family: str = request.param
    name = f"e2e-{family}"
    hcp("local", "up", "--name", name, "--profile", "cluster", "--ip-family", family)
    try:
        cluster = Cluster(name, tmp_path_factory.mktemp(name))
        image = cluster.image()
        listening = [server(HERE, one, image) for one in ("one", "two")]
        cluster.apply(namespace(HERE), *listening, *(_service(one) for one in ("one", "two")))
        cluster.wait_pods(HERE, "one", "two")
        yield Made(family, cluster)
    finally:
        hcp("local", "down", "--name", name, "--purge")


def _service(name: str, kind: str = "ClusterIP") -> dict[str, Any]:
    found = service(HERE, name, kind)
    found["spec"]["ipFamilyPolicy"] = "PreferDualStack"
    return found


def _versions(addresses: list[str]) -> list[int]:
    return [ipaddress.ip_address(one).version for one in addresses]


def _pod(made: Made, name: str) -> list[str]:
    return [one["ip"] for one in made.cluster.get("pod", name, "-n", HERE)["status"]["podIPs"]]


def test_everything_is_well_and_stays_so(made: Made) -> None:
    well(made.name)
    assert "nothing had to be done" in hcp("local", "up", "--name", made.name).stdout


def test_another_family_is_refused(made: Made) -> None:
    done = hcp("local", "up", "--name", made.name, "--ip-family", "ipv4", check=False)
    assert done.returncode != 0
    assert f"made with --ip-family {made.family}, which cannot become ipv4" in done.stderr


def test_nodes_and_pods_have_an_address_of_each_family(made: Made) -> None:
    (node,) = made.cluster.get("nodes")["items"]
    own = [one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP"]
    assert _versions(own) == made.versions
    assert len(node["spec"]["podCIDRs"]) == len(made.versions)
    for name in ("one", "two"):
        assert _versions(_pod(made, name)) == made.versions


def test_pods_and_services_answer_by_each_family_and_by_name(made: Made) -> None:
    addresses = made.cluster.get("service", "two", "-n", HERE)["spec"]["clusterIPs"]
    assert _versions(addresses) == made.versions
    urls = [f"http://{in_url(one)}:8080" for one in _pod(made, "two")]
    urls += [f"http://{in_url(one)}" for one in addresses]
    for url in (*urls, f"http://two.{HERE}.svc.cluster.local"):
        eventually_sync(lambda u=url: made.cluster.ask(HERE, "one", u) == "I am two", url)  # type: ignore[misc]


def test_load_balancers_answer_by_each_family(made: Made) -> None:
    made.cluster.apply(_service("one", "LoadBalancer"))

    def given() -> list[str]:
        ingress = made.cluster.get("service", "one", "-n", HERE)["status"]["loadBalancer"]["ingress"]
        return [entry["ip"] for entry in ingress]

    addresses = eventually_sync(given, "addresses")
    assert _versions(addresses) == made.versions
    for one in addresses:
        eventually_sync(lambda a=one: open_url(f"http://{in_url(a)}") == "I am one", f"{one} on the machine")  # type: ignore[misc]
        assert made.cluster.ask(HERE, "two", f"http://{in_url(one)}") == "I am one"
    made.cluster.apply(_service("one"))


def test_routes_answer_by_each_family(made: Made) -> None:
    route = {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"name": "one", "namespace": HERE},
        "spec": {"to": {"kind": "Service", "name": "one"}, "port": {"targetPort": "http"}},
    }
    made.cluster.apply(route)
    host = eventually_sync(lambda: made.cluster.get("route", "one", "-n", HERE)["spec"].get("host"), "a host")
    router = made.cluster.get("service", "router-default", "-n", "openshift-ingress")
    addresses = [entry["ip"] for entry in router["status"]["loadBalancer"]["ingress"]]
    assert _versions(addresses) == made.versions
    for one in addresses:
        eventually_sync(lambda a=one: open_url(f"http://{in_url(a)}", host) == "I am one", f"the Route at {one}")  # type: ignore[misc]
    eventually_sync(lambda: made.cluster.ask(HERE, "two", f"http://{host}") == "I am one", "the Route by its name")
    asked = "import socket,sys; print(*{a[4][0] for a in socket.getaddrinfo(sys.argv[1], 80)})"
    said = made.cluster.kubectl("exec", "-n", HERE, "two", "--", "python3", "-c", asked, host)
    assert set(said.split()) == set(addresses)
    made.cluster.kubectl("delete", "route", "one", "-n", HERE)


def test_a_policy_holds_for_each_family(made: Made) -> None:
    urls = [f"http://{in_url(one)}:8080" for one in _pod(made, "two")]
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "closed", "namespace": HERE},
        "spec": {"podSelector": {"matchLabels": {"app": "two"}}, "policyTypes": ["Ingress"]},
    }
    for url in urls:
        assert made.cluster.ask(HERE, "one", url) == "I am two"
    made.cluster.apply(policy)
    for url in urls:
        eventually_sync(
            lambda u=url: made.cluster.ask(HERE, "one", u).startswith("failed"),  # type: ignore[misc]
            f"{url} is closed",
        )
    made.cluster.kubectl("delete", "networkpolicy", "closed", "-n", HERE)
    for url in urls:
        eventually_sync(lambda u=url: made.cluster.ask(HERE, "one", u) == "I am two", f"{url} is open")  # type: ignore[misc]


def test_egress_by_pod_holds_for_each_family(made: Made) -> None:
    """Neighbours have to be found all the same: a policy that dropped that would close everything."""
    dns = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}
    to_two = {"to": [{"podSelector": {"matchLabels": {"app": "two"}}}]}
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "outwards", "namespace": HERE},
        "spec": {"podSelector": {"matchLabels": {"app": "one"}}, "policyTypes": ["Egress"], "egress": [dns, to_two]},
    }
    (node,) = made.cluster.get("nodes")["items"]
    nodes = [one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP"]

    def reached(address: str) -> bool:
        """Who gets there is shown a certificate that it does not trust."""
        return "CERTIFICATE_VERIFY_FAILED" in made.cluster.ask(HERE, "one", f"https://{in_url(address)}:6443", 10)

    assert all(map(reached, nodes))
    made.cluster.apply(policy)
    for address in nodes:
        eventually_sync(lambda a=address: not reached(a), f"{address} is closed")  # type: ignore[misc]
    for address in _pod(made, "two"):
        assert made.cluster.ask(HERE, "one", f"http://{in_url(address)}:8080") == "I am two"
    made.cluster.kubectl("delete", "networkpolicy", "outwards", "-n", HERE)


def test_a_hosted_control_plane_is_reached_by_each_family(made: Made, tmp_path: Path) -> None:
    hcp("local", "push", "--name", made.name, "image-hcp", "release-1.36")
    hcp("install", "--kubeconfig", str(made.cluster.kubeconfig), "--wait-until-available")
    made.cluster.apply(namespace(NS))
    six = ["--cluster-cidr=fd01::/48", "--service-cidr=fd02::/112"]
    create(made.cluster, tmp_path, "both", *(["--default-dual"] if made.family == "dual" else six))
    available(made.cluster, "both")
    ingress = made.cluster.get("service", "kube-apiserver", "-n", f"{NS}-both")["status"]["loadBalancer"]["ingress"]
    assert _versions([entry["ip"] for entry in ingress]) == made.versions
    guest = guest_of(made.cluster, tmp_path, "both")
    for entry in ingress:
        address = f"--server=https://{in_url(entry['ip'])}:6443"
        said = json.loads(guest.kubectl(address, "get", "service", "kubernetes", "-o", "json"))
        assert _versions(said["spec"]["clusterIPs"]) == made.versions[:1]
    body = {"ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 80}], "selector": {"app": "x"}}
    made_service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": body}
    guest.kubectl("apply", "-f", "-", stdin=json.dumps(made_service))
    assert _versions(guest.get("service", "x", "-n", "default")["spec"]["clusterIPs"]) == made.versions
    made.cluster.kubectl("delete", "hostedcluster", "both", "-n", NS, seconds=600)
