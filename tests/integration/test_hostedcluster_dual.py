"""A hosted cluster of both IP families, with the real API server and controller manager: what its networks come to."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from tests.support import management as s
from tests.support.eventually import eventually
from tests.support.hosted_operator import rests, says
from tests.support.hosted_pods import HostedPods
from tests.support.running_cluster import NAME, NS, kubeconfig

from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube import resources as k

Object = dict[str, Any]


@pytest.fixture
async def image(registry: Any, tmp_path: Path) -> str:
    return await s.push_release(registry, tmp_path, "1.36.3")


@pytest.fixture
def network_type() -> str:
    return "OVNKubernetes"


@pytest.fixture
def networks() -> dict[str, list[dict[str, str]]]:
    return {
        "clusterNetwork": [{"cidr": "10.132.0.0/14"}, {"cidr": "fd01::/48"}],
        "serviceNetwork": [{"cidr": "172.31.0.0/16"}, {"cidr": "fd02::/112"}],
    }


async def test_networks_of_both_families_reach_nodes_services_and_certificates(admin: Client, pods: HostedPods) -> None:
    login = await kubeconfig(admin)
    async with Client(untrusted_kubeconfig.load(login)) as guest:
        await eventually(
            lambda: says(admin, NAME, "ConfigOperatorReconciliationSucceeded", "True"), "the guest is wired"
        )
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}}
        await guest.create(node)

        async def ranges() -> list[str] | None:
            found: list[str] = (await guest.get(k.NODES, "one"))["spec"].get("podCIDRs") or []
            return found if len(found) == 2 else None

        four, six = map(ipaddress.ip_network, await eventually(ranges, "a range of each family for the node"))
        assert (four.version, four.prefixlen, six.version, six.prefixlen) == (4, 23, 6, 64)

        dns = await eventually(lambda: guest.get_or_none(k.SERVICES, "kube-dns", "kube-system"), "the DNS Service")
        assert dns["spec"]["clusterIPs"] == ["172.31.0.10", "fd02::a"]
        assert dns["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
        meta = {"name": "both", "namespace": "default"}
        ask = {"ipFamilyPolicy": "RequireDualStack", "ports": [{"port": 80}], "selector": {"app": "x"}}
        made = await guest.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": ask})
        first, second = (ipaddress.ip_address(one) for one in made["spec"]["clusterIPs"])
        assert first in ipaddress.ip_network("172.31.0.0/16") and second in ipaddress.ip_network("fd02::/112")

    await _answers_by_ipv6(admin, pods)
    service = await admin.get(k.SERVICES, "kube-apiserver", NS)
    assert service["spec"]["ipFamilyPolicy"] == "PreferDualStack"
    live = await admin.get(k.HOSTEDCLUSTERS, NAME, "clusters")
    assert live["status"]["controlPlaneEndpoint"]["host"] == "127.0.0.1", "the first family's"
    await eventually(lambda: rests(admin, NAME), "a pass that writes nothing")


async def _answers_by_ipv6(admin: Client, pods: HostedPods) -> None:
    """The API server listens there, and shows a certificate with all addresses it has."""
    trusted = str((await admin.get(k.CONFIGMAPS, "root-ca", NS))["data"]["ca.crt"])
    context = ssl.create_default_context(cadata=trusted)

    def ask() -> bytes:
        with (
            socket.create_connection(("::1", pods.api_port), 30) as plain,
            context.wrap_socket(plain, server_hostname="::1") as secure,
        ):
            return secure.getpeercert(True) or b""

    shown = x509.load_der_x509_certificate(await asyncio.to_thread(ask))
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = {str(one) for one in names.get_values_for_type(x509.IPAddress)}
    assert {"127.0.0.1", s.BALANCER_SIX, "172.31.0.1", "fd02::1"} <= addresses


async def test_two_ranges_of_one_family_are_told(admin: Client, pods: HostedPods, image: str, registry: Any) -> None:
    same = [{"cidr": "172.30.0.0/16"}, {"cidr": "172.29.0.0/16"}]
    networking = {"networkType": "Other", "clusterNetwork": [{"cidr": "10.132.0.0/14"}], "serviceNetwork": same}
    await s.create(admin, "wrong", image, registry, networking=networking)

    async def said() -> bool:
        found = await s.condition(admin, "wrong", "ValidConfiguration")
        return found.get("status") == "False" and "two ranges of IPv4" in str(found.get("message"))

    await eventually(said, "what is wrong")
    await admin.delete(k.HOSTEDCLUSTERS, "wrong", "clusters")
