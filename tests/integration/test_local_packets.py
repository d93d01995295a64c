"""The embedded node's packet rules, in network namespaces with real packets: who reaches what of a node."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from tests.support.local_networks import PORTS, Networks

from hcp import payload
from hcp.local.network.addresses import Addresses
from hcp.local.network.firewall import node_rules

PLAN, OTHER = Addresses(29), Addresses(30)
POD = f"{PLAN.pods.rpartition('.0.0')[0]}.0.5"


@pytest.fixture(scope="module")
def networks() -> Iterator[Networks]:
    made = Networks()
    node, machine, pod = made.node, made.machine, made.pod
    commands = [
        *(f"ip netns add {name}" for name in (node, machine, pod)),
        f"ip -n {node} link add eth0 type veth peer name way netns {machine}",
        f"ip -n {node} link add pod0 type veth peer name eth0 netns {pod}",
        f"ip -n {machine} address add {PLAN.host}/24 dev way",
        # What another cluster's node forwards comes from that node's address.
        f"ip -n {machine} address add {OTHER.node}/32 dev lo",
        f"ip -n {node} address add {PLAN.node}/24 dev eth0",
        f"ip -n {node} address add {PLAN.registry}/32 dev eth0",
        f"ip -n {pod} address add {POD}/32 dev eth0",
        *(f"ip -n {name} link set lo up" for name in (node, machine, pod)),
        *(f"ip -n {node} link set {name} up" for name in ("eth0", "pod0")),
        f"ip -n {machine} link set way up",
        f"ip -n {pod} link set eth0 up",
        f"ip -n {node} route add default via {PLAN.host}",
        f"ip -n {node} route add {POD}/32 dev pod0",
        f"ip -n {pod} route add {PLAN.node}/32 dev eth0",
        f"ip -n {pod} route add {PLAN.registry}/32 dev eth0",
        f"ip -n {node} address add 169.254.1.1/32 dev pod0",
    ]
    try:
        for command in commands:
            subprocess.run(command.split(), check=True)
        tools = payload.ensure(["node-tools"])["node-tools"] / "bin"
        made.run(node, str(tools / "nft"), "-f", "-", stdin=node_rules(PLAN))
        made.serve(node, *PORTS)
        yield made
    finally:
        made.end()


def test_the_machine_reaches_its_node(networks: Networks) -> None:
    assert networks.open_ports(PLAN.host, PLAN.node) == PORTS


def test_other_clusters_reach_the_api_and_the_registry_and_nothing_else(networks: Networks) -> None:
    assert networks.open_ports(OTHER.node, PLAN.node) == (6443,)
    assert networks.open_ports(OTHER.node, PLAN.registry) == (5000,)


def test_pods_reach_their_own_node(networks: Networks) -> None:
    """Which of them may is said by network policies; that of virtual machines names the node's addresses."""
    assert networks.opens(networks.pod, POD, PLAN.node, 6443)
    assert networks.opens(networks.pod, POD, PLAN.registry, 5000)
    assert not networks.opens(networks.pod, POD, PLAN.registry, 10250)


def test_an_announced_address_without_a_service_refuses_at_once(networks: Networks) -> None:
    """Whoever announces it has told the machine the node's hardware address; nothing is translated."""
    address = PLAN.pool_range.partition("-")[0]
    hardware = networks.run(networks.node, "cat", "/sys/class/net/eth0/address").strip()
    networks.run(networks.node, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
    networks.run(networks.machine, "ip", "neigh", "replace", address, "lladdr", hardware, "dev", "way")
    assert networks.knock(networks.machine, PLAN.host, address, 80) == "refused"
    networks.run(networks.pod, "ip", "route", "replace", f"{address}/32", "dev", "eth0")
    networks.run(networks.pod, "ip", "neigh", "replace", address, "lladdr", _pod_side(networks), "dev", "eth0")
    assert networks.knock(networks.pod, POD, address, 80) == "refused"


def _pod_side(networks: Networks) -> str:
    return networks.run(networks.node, "cat", "/sys/class/net/pod0/address").strip()
