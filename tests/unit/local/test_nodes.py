"""Nodes after the first: who they are, what they get, and what they never get."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import replace
from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.local.controlplane import certs
from hcp.local.lifecycle.drain import moves
from hcp.local.network.addresses import MAX_NODES, Addresses
from hcp.local.network.firewall import machine_rules, node_rules
from hcp.local.node import files
from hcp.local.node.processes import processes
from hcp.local.node.routes import inside
from hcp.local.state import nodes
from hcp.local.state.layout import Layout
from hcp.local.state.spec import Spec

ONE = Spec("t", "cluster", 5)
THREE = replace(ONE, joined=[2, 3])
BINARIES = {name: Path("/payload/bin") / name for name in ("containerd", "kubelet", "kube-proxy", "registry")}


def test_nodes_have_names_addresses_and_pods_of_their_own() -> None:
    found = nodes.all_nodes(replace(ONE, joined=list(range(2, MAX_NODES + 1))))
    assert [node.name for node in found[:3]] == ["hcp-t", "hcp-t-2", "hcp-t-3"]
    assert len({node.address for node in found}) == len({node.link for node in found}) == MAX_NODES
    ranges = [ipaddress.ip_network(node.pods[0]) for node in found]
    assert not any(one.overlaps(other) for one in ranges for other in ranges if one != other)
    whole = ipaddress.IPv4Network(found[0].plan.pods)
    joined = ipaddress.IPv4Network(found[0].plan.joined_nodes)
    assert all(ipaddress.IPv4Network(node.pods[0]).subnet_of(whole) for node in found)
    assert all(ipaddress.ip_address(node.address) in joined for node in found[1:])
    assert not joined.overlaps(ipaddress.IPv4Network(found[0].plan.load_balancers))
    assert {found[0].address, found[0].plan.host, found[0].plan.registry}.isdisjoint(map(str, joined))
    assert all(len(Addresses(31).link_of(node.index)) <= 15 for node in found)


def test_one_node_is_what_it_was() -> None:
    [node] = nodes.all_nodes(ONE)
    assert (node.name, node.address, node.link, node.layout(Layout(Path("/s"))).root) == (
        *("hcp-t", "10.88.5.2", "hcp5"),
        Path("/s"),
    )
    assert nodes.all_nodes(Spec("t", "api")) == []


def test_more_nodes_join_and_none_leaves_by_a_number() -> None:
    assert nodes.with_count(ONE, None) == ONE
    assert nodes.with_count(ONE, 3).joined == [2, 3]
    assert nodes.with_count(replace(ONE, joined=[3]), 3).joined == [2, 3]
    assert nodes.with_more(THREE, 1).joined == [2, 3, 4]
    assert nodes.without(THREE, 2).joined == [3]
    with pytest.raises(HcpError, match="takes none away"):
        nodes.with_count(THREE, 2)
    with pytest.raises(HcpError, match="1 to 8 nodes, not 9"):
        nodes.with_count(ONE, 9)
    with pytest.raises(HcpError, match="all there can be"):
        nodes.with_more(THREE, 6)
    with pytest.raises(HcpError, match="with a node"):
        nodes.with_count(Spec("t", "api"), 2)


def test_a_node_is_found_by_name_or_number() -> None:
    assert nodes.find(THREE, "hcp-t-2").index == nodes.find(THREE, "2").index == 2
    with pytest.raises(HcpError, match="no such node: 7"):
        nodes.find(THREE, "7")


def test_a_joined_node_gets_its_own_keys_and_no_other(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "t")
    layout.make()
    certs.ensure(layout, THREE)
    own = nodes.joined(THREE)[0].layout(layout)
    names = {"ca.crt", "registry-ca.crt"}
    names |= {f"{name}.{end}" for name in ("kubelet", "kubelet-serving", "kube-proxy") for end in ("crt", "key")}
    assert {path.name for path in own.pki.iterdir()} == names
    assert {path.name for path in own.etc.glob("*.kubeconfig")} == {"kubelet.kubeconfig", "kube-proxy.kubeconfig"}
    assert own.root.is_relative_to(layout.root)
    before = (own.pki / "kubelet.key").read_bytes()
    certs.ensure(layout, THREE)
    assert (own.pki / "kubelet.key").read_bytes() == before


def test_a_joined_node_runs_only_what_every_node_runs(tmp_path: Path) -> None:
    node = nodes.joined(THREE)[1]
    found = processes(node, node.layout(Layout(tmp_path)), BINARIES, {})
    assert [process.name for process in found] == ["containerd", "kubelet", "kube-proxy"]
    [kubelet] = [process for process in found if process.name == "kubelet"]
    assert kubelet.after == ["containerd"]
    assert {"--hostname-override=hcp-t-3", "--node-ip=10.88.5.9"} <= set(kubelet.argv)
    assert files.kubelet(node, Layout(tmp_path))["cgroupRoot"] == "/hcp-t-3"
    assert json.loads(files.cni(node, 1500))["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.165.32.0/20"}]]


def test_routes_lead_to_other_nodes_by_way_of_the_machine() -> None:
    first, second, _ = nodes.all_nodes(THREE)
    assert ["route", "add", "10.88.5.8/29", "via", "10.88.5.1"] in inside(first)
    assert ["route", "add", "local", "10.88.5.64/26", "dev", "lo"] in inside(first)
    assert ["address", "add", "10.88.5.8/32", "dev", "eth0"] in inside(second)
    assert not any("10.88.5.64/26" in command or "10.88.5.3/32" in command for command in inside(second))
    assert inside(second)[-1] == ["route", "add", "unreachable", "10.165.16.0/20"]


def test_pods_keep_their_addresses_between_nodes_and_reach_nothing_of_the_machine() -> None:
    plan = ONE.addresses
    assert f"ip saddr {plan.pods} ip daddr != {plan.pods}" in node_rules(plan)
    assert f'ip daddr {plan.pods} oifname != "hcp5" oifname != "hcp5n*" drop' in machine_rules("t", plan, [])
    assert 'iifname != "hcp5" iifname != "hcp5n*" accept' in machine_rules("t", plan, [])


@pytest.mark.parametrize(
    ("pod", "leaves"),
    [
        ({"metadata": {}}, True),
        ({"metadata": {"ownerReferences": [{"kind": "ReplicaSet"}]}}, True),
        ({"metadata": {"ownerReferences": [{"kind": "DaemonSet"}]}}, False),
        ({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}, False),
        ({"metadata": {}, "status": {"phase": "Succeeded"}}, False),
    ],
)
def test_what_leaves_a_drained_node(pod: dict[str, object], leaves: bool) -> None:
    assert moves(pod) is leaves
