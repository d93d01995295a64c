"""Packets of an embedded cluster with IPv6: what a node answers, what a pod may send, how it gets out.

The kernel's own, with the rules and the commands that make a node's network; no cluster.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from tests.support.local_networks import PORTS, Networks

from hcp import payload
from hcp.local.network.addresses import DUAL, IPV4, Addresses
from hcp.local.network.addresses6 import Addresses6
from hcp.local.network.firewall import machine_rules, node_rules
from hcp.local.node.routes import inside
from hcp.local.state.nodes import first
from hcp.local.state.spec import Spec

PLAN, OTHER = Addresses6(29), Addresses6(30)
POD, SPOOFED = "fd68:6370:29:100::5", "fd68:6370:29:100::6"
GATEWAY = "fd68:6370:29:100::1"
OUTSIDE = "2001:db8::1"
WAY = "hcp29"


def _made(family: str) -> Networks:
    """A node as it is made, with a machine and a pod by hand: those are the machine's and the CNI plugin's work."""
    made = Networks()
    node, machine, pod = made.node, made.machine, made.pod
    plan = Addresses(29, family)
    before = [
        *(f"ip netns add {name}" for name in (node, machine, pod)),
        f"ip -n {node} link add eth0 type veth peer name {WAY} netns {machine}",
        f"ip -n {machine} address add {plan.host}/24 dev {WAY}",
        f"ip -n {machine} address add {PLAN.host}/64 dev {WAY} nodad",
        *(f"ip -n {machine} address add {one}/128 dev lo" for one in (OTHER.node, OUTSIDE)),
        *(f"ip -n {machine} link set {name} up" for name in ("lo", WAY)),
    ]
    own = [f"ip -n {node} {' '.join(command)}" for command in inside(first(Spec("t", "cluster", 29, ip_family=family)))]
    after = [
        *(
            f"ip -n {machine} route add {one} via {PLAN.node} dev {WAY} onlink"
            for one in (PLAN.load_balancers, PLAN.registry)
        ),
        f"ip -n {node} link add pod0 type veth peer name eth0 netns {pod}",
        f"ip -n {node} address add {GATEWAY}/128 dev pod0 nodad",
        f"ip -n {node} link set pod0 up",
        f"ip -n {node} route add {POD}/128 dev pod0",
        *(f"ip -n {pod} address add {one}/128 dev eth0 nodad" for one in (POD, SPOOFED)),
        *(f"ip -n {pod} link set {name} up" for name in ("lo", "eth0")),
        f"ip -n {pod} route add {GATEWAY}/128 dev eth0",
        f"ip -n {pod} route add default via {GATEWAY} dev eth0",
    ]
    try:
        for command in (*before, *own, *after):
            subprocess.run(command.split(), check=True)
        made.run(node, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
        nft = str(payload.ensure(["node-tools"])["node-tools"] / "bin" / "nft")
        made.run(node, nft, "-f", "-", stdin=node_rules(plan))
        made.run(machine, nft, "-f", "-", stdin=machine_rules("hcp_local_29", plan, []))
        made.serve(node, *PORTS)
        made.serve(machine, 7000)
        made.serve(pod, 8080)
    except BaseException:
        made.end()
        raise
    return made


@pytest.fixture(scope="module")
def networks() -> Iterator[Networks]:
    made = _made(DUAL)
    yield made
    made.end()


def test_the_machine_reaches_its_node(networks: Networks) -> None:
    assert networks.open_ports(PLAN.host, PLAN.node) == PORTS


def test_other_clusters_reach_the_api_and_the_registry_and_nothing_else(networks: Networks) -> None:
    assert networks.open_ports(OTHER.node, PLAN.node) == (6443,)
    assert networks.open_ports(OTHER.node, PLAN.registry) == (5000,)


def test_pods_reach_their_own_node_from_their_own_address_only(networks: Networks) -> None:
    assert networks.opens(networks.pod, POD, PLAN.node, 6443)
    assert networks.opens(networks.pod, POD, PLAN.registry, 5000)
    assert networks.knock(networks.pod, SPOOFED, PLAN.node, 6443) == "closed"


def test_the_node_reaches_its_pods_and_is_answered(networks: Networks) -> None:
    assert networks.seen(networks.node, "", POD, 8080) == GATEWAY


def test_link_local_addresses_serve_to_find_each_other_and_nothing_else(networks: Networks) -> None:
    """No NetworkPolicy knows of them."""
    (line,) = networks.run(
        networks.node, "ip", "-6", "-br", "address", "show", "dev", "pod0", "scope", "link"
    ).splitlines()
    address = line.split()[2].partition("/")[0]
    assert networks.opens(networks.pod, POD, PLAN.node, 6443), "neighbours are found"
    assert networks.knock(networks.pod, "", f"{address}%eth0", 6443) == "closed"
    assert networks.knock(networks.pod, POD, f"{address}%eth0", 6443) == "closed"
    assert networks.knock(networks.pod, POD, GATEWAY, 6443) == "closed"


def test_what_leaves_a_node_has_its_address(networks: Networks) -> None:
    """The machine lets itself be spoken to only as the answer to what it asked, so the way is watched where it ends."""
    networks.run(networks.machine, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
    nft = str(payload.ensure(["node-tools"])["node-tools"] / "bin" / "nft")
    assert networks.knock(networks.pod, POD, PLAN.host, 7000) == "refused", "of the machine pods reach nothing"
    networks.run(networks.machine, nft, "flush chain ip6 hcp_local_29 own")
    assert networks.seen(networks.pod, POD, OUTSIDE, 7000) == PLAN.node


def test_a_load_balancer_address_without_a_service_refuses_at_once(networks: Networks) -> None:
    last = PLAN.router.replace("::40", "::7f")
    assert networks.knock(networks.machine, PLAN.host, last, 6443) == "refused"
    assert networks.knock(networks.pod, POD, last, 6443) == "refused"


def test_a_cluster_without_ipv6_hears_none_from_pods() -> None:
    made = _made(IPV4)
    try:
        made.run(made.node, "ip", "address", "add", f"{PLAN.node}/64", "dev", "eth0", "nodad")
        assert made.opens(made.machine, PLAN.host, PLAN.node, 6443)
        assert made.knock(made.pod, POD, PLAN.node, 6443) == "closed"
    finally:
        made.end()
