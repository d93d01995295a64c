"""Hosted control planes of both IP families: flags, Services, addresses and names; and IPv4 as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.unit.controlplane import params

from hcp.controlplane import apiserver, certs, controller_manager, etcd, scheduler, services
from hcp.controlplane.params import Endpoint, Params, Publishing

PODS, SERVICES = ("10.132.0.0/14", "fd01::/48"), ("172.31.0.0/16", "fd02::/112")
LB = Publishing("APIServer", "LoadBalancer")


def both(**more: Any) -> Params:
    return params(cluster_networks=PODS, service_networks=SERVICES, host_prefixes=(23, 64), **more)


def six(**more: Any) -> Params:
    networks = {"cluster_networks": PODS[1:], "service_networks": SERVICES[1:], "host_prefixes": (64,)}
    return params(advertise_address="fd00::1", **networks, **more)


def test_the_controller_manager_cuts_both_networks() -> None:
    words = controller_manager.arguments(both())
    assert "--cluster-cidr=10.132.0.0/14,fd01::/48" in words
    assert "--service-cluster-ip-range=172.31.0.0/16,fd02::/112" in words
    assert {word for word in words if "mask-size" in word} == {
        *("--node-cidr-mask-size-ipv4=23", "--node-cidr-mask-size-ipv6=64"),
    }
    turned = params(cluster_networks=PODS[::-1], service_networks=SERVICES[::-1], host_prefixes=(64, 23))
    assert "--node-cidr-mask-size-ipv4=23" in controller_manager.arguments(turned)
    assert [word for word in controller_manager.arguments(six()) if "mask-size" in word] == [
        "--node-cidr-mask-size-ipv6=64"
    ]


@pytest.mark.parametrize(
    ("given", "where"),
    [
        (params(), "0.0.0.0"),
        (both(), "::"),
        (six(), "::"),
        (params(management_networks=("10.0.0.0/8", "fd68::/32")), "::"),
        (params(management_networks=("10.0.0.0/8",)), "0.0.0.0"),
    ],
)
def test_components_listen_where_they_may_be_called(given: Params, where: str) -> None:
    for words in (apiserver.arguments(given), controller_manager.arguments(given), scheduler.arguments(given)):
        assert f"--bind-address={where}" in words


def test_etcd_listens_on_a_pod_address_without_ipv4() -> None:
    text = json.dumps(etcd.stateful_set(params(management_networks=("fd68::/32",)), "x"))
    assert "--listen-client-urls=https://[$(POD_IP)]:2379" in text
    assert "--listen-client-urls=https://$(POD_IP):2379" in json.dumps(etcd.stateful_set(params(), "x"))


def test_load_balancers_ask_for_both_families_only_where_they_are_wanted() -> None:
    assert "ipFamilyPolicy" not in services.api_service(params(publishing={"APIServer": LB}))["spec"]
    assert services.api_service(both(publishing={"APIServer": LB}))["spec"]["ipFamilyPolicy"] == "PreferDualStack"


def balanced(*addresses: str) -> dict[str, Any]:
    ingress = [{"ip": one} for one in addresses]
    return {"spec": {"ports": [{"port": 6443}]}, "status": {"loadBalancer": {"ingress": ingress}}}


def test_of_two_addresses_the_one_of_the_first_family_is_told_and_both_are_in_the_certificate() -> None:
    live = balanced("192.0.2.1", "2001:db8::1")
    assert services.endpoint(LB, live, None) == Endpoint("192.0.2.1", 6443)
    found = services.endpoint(LB, live, None, six=True)
    assert found == Endpoint("2001:db8::1", 6443)
    assert services.endpoint(LB, balanced("192.0.2.1"), None, six=True) == Endpoint("192.0.2.1", 6443)
    addresses = services.balancer_addresses(found, live)
    assert set(certs.hosts(both(api_endpoint=found, api_addresses=addresses))[1]) >= {"192.0.2.1", "2001:db8::1"}
    assert services.balancer_addresses(Endpoint("api.example.com", 6443), live) == ()
    assert {"172.31.0.1", "fd02::1"} <= set(certs.hosts(both())[1])
