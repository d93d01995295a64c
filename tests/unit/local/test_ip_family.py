"""Embedded clusters with IPv6: addresses, command lines, rules, names; and what is refused."""

from __future__ import annotations

import ipaddress
import itertools
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hcp.errors import HcpError
from hcp.local.addons import config, dns, policy, router
from hcp.local.controlplane import certs
from hcp.local.controlplane.processes import control_plane
from hcp.local.lifecycle.plan import check_family, plan
from hcp.local.network.addresses import DUAL, IPV4, IPV6, MAX_CLUSTERS, MAX_NODES, Addresses
from hcp.local.network.addresses6 import ALL
from hcp.local.network.firewall import machine_rules, node_rules
from hcp.local.network.loadbalancer import wanted_addresses
from hcp.local.node import files
from hcp.local.node.processes import processes
from hcp.local.node.routes import inside
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import Node, first
from hcp.local.state.spec import Spec

FOUR = Spec("t", "cluster", 5)
BOTH = replace(FOUR, ip_family=DUAL)
SIX = replace(FOUR, ip_family=IPV6)
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "containerd")
BINARIES = {name: Path("/payload/bin") / name for name in (*NAMES, "registry")}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "t")


def words(spec: Spec, layout: Layout, name: str) -> list[str]:
    found = [*control_plane(spec, layout, BINARIES, {}), *processes(first(spec), layout, BINARIES, {})]
    return next(one.argv for one in found if one.name == name)


def test_ranges_of_all_clusters_are_apart_and_ours() -> None:
    ranges = []
    for number in range(MAX_CLUSTERS):
        six = Addresses(number, DUAL).six
        assert six is not None
        ranges += [ipaddress.IPv6Network(one) for one in (six.link_range, six.load_balancers, six.pods, six.services)]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(ranges, 2))
    assert all(one.subnet_of(ipaddress.IPv6Network(ALL)) for one in ranges)


def test_nodes_and_special_addresses_are_where_they_are_said_to_be() -> None:
    six = Addresses(31, IPV6).six
    assert six is not None
    joined, link = ipaddress.IPv6Network(six.joined_nodes), ipaddress.IPv6Network(six.link_range)
    own = {ipaddress.ip_address(one) for one in (six.host, six.node, six.registry)}
    others = {ipaddress.ip_address(six.node_of(index)) for index in range(2, MAX_NODES + 1)}
    assert others <= set(joined) and not own & set(joined) and len(others) == MAX_NODES - 1
    assert all(one in link for one in own | others)
    assert ipaddress.ip_address(six.router) == ipaddress.IPv6Network(six.load_balancers)[0]
    assert ipaddress.IPv6Network(six.announced).subnet_of(link)
    pods = [ipaddress.IPv6Network(six.pods_of(index)) for index in range(1, MAX_NODES + 1)]
    assert len(set(pods)) == MAX_NODES and all(one.subnet_of(ipaddress.IPv6Network(six.pods)) for one in pods)
    assert ipaddress.ip_address(six.dns) == ipaddress.IPv6Network(six.services)[10]


def test_two_families_are_two_of_everything_and_ipv4_comes_first(layout: Layout) -> None:
    server = words(BOTH, layout, "kube-apiserver")
    assert "--bind-address=::" in server and "--advertise-address=10.88.5.2" in server
    assert "--service-cluster-ip-range=10.197.0.0/16,fd68:6370:5:200::/112" in server
    manager = words(BOTH, layout, "kube-controller-manager")
    assert "--cluster-cidr=10.165.0.0/16,fd68:6370:5:100::/56" in manager
    assert {"--node-cidr-mask-size-ipv4=20", "--node-cidr-mask-size-ipv6=64"} <= set(manager)
    assert "--node-ip=10.88.5.2,fd68:6370:5::2" in words(BOTH, layout, "kubelet")
    assert words(BOTH, layout, "load-balancer")[-4:] == [
        *("10.88.5.64/26", "10.88.5.64"),
        *("fd68:6370:5:1::40/122", "fd68:6370:5:1::40"),
    ]
    assert files.kube_proxy(first(BOTH), layout)["clusterCIDR"] == "10.165.0.0/16,fd68:6370:5:100::/56"
    ipam = json.loads(files.cni(first(BOTH), 1500))["plugins"][0]["ipam"]
    assert [one[0]["subnet"] for one in ipam["ranges"]] == ["10.165.0.0/20", "fd68:6370:5:100::/64"]
    assert [one["dst"] for one in ipam["routes"]] == ["0.0.0.0/0", "::/0"]
    assert BOTH.server == "https://10.88.5.2:6443"


def test_ipv6_alone_is_known_by_its_own_addresses(layout: Layout) -> None:
    server = words(SIX, layout, "kube-apiserver")
    assert "--advertise-address=fd68:6370:5::2" in server
    assert "--service-cluster-ip-range=fd68:6370:5:200::/112" in server
    assert "--node-cidr-mask-size=64" in words(SIX, layout, "kube-controller-manager")
    assert "--node-ip=fd68:6370:5::2" in words(SIX, layout, "kubelet")
    assert SIX.server == "https://[fd68:6370:5::2]:6443"
    assert files.registry(layout, SIX.addresses.primary.registry)["http"]["addr"] == "[fd68:6370:5::3]:5000"
    assert SIX.addresses.apps_domain == "apps.fd68-6370-5-1--40.hcp.test"


def test_certificates_name_the_addresses_of_both_families() -> None:
    leaf = certs.leaves(BOTH)["apiserver"].leaf
    assert {"10.88.5.2", "10.197.0.1", "fd68:6370:5::2", "fd68:6370:5:200::1"} <= set(leaf.ips)
    assert certs.leaves(BOTH)["kubelet-serving"].leaf.ips == ("10.88.5.2", "fd68:6370:5::2")


def test_a_cluster_of_ipv4_has_no_ipv6_in_it(layout: Layout) -> None:
    found: list[Any] = [
        *(one.argv for one in control_plane(FOUR, layout, BINARIES, {})),
        *(one.argv for one in processes(first(FOUR), layout, BINARIES, {})),
        inside(first(FOUR)),
        files.cni(first(FOUR), 1500),
        policy.objects(FOUR.addresses, "i"),
        config.objects(FOUR.addresses, "PEM"),
        dns.corefile(FOUR.addresses, forward=True),
        node_rules(FOUR.addresses),
        machine_rules("t", FOUR.addresses, []),
    ]
    assert "fd68" not in json.dumps(found) and "ip6 " not in json.dumps(found)


def test_routes_inside_are_those_of_both_families() -> None:
    commands = [" ".join(command) for command in inside(first(BOTH))]
    assert "address add fd68:6370:5::2/64 dev eth0 nodad" in commands
    assert "route add local fd68:6370:5:1::40/122 dev lo" in commands
    assert "route add unreachable fd68:6370:5:100::/64" in commands
    second = [" ".join(command) for command in inside(Node(BOTH, 2))]
    assert "address add fd68:6370:5::8/128 dev eth0 nodad" in second
    assert "route add unreachable fd68:6370:5:101::/64" in second


def test_names_of_the_apps_domain_have_addresses_of_their_cluster() -> None:
    text = dns.corefile(BOTH.addresses, forward=False)
    rules = re.findall(r'IN AAAA hcp\.test \{\s+match "(.*)"\s+answer "\{\{ .Name \}\} 60 IN AAAA (.*)"', text)
    by_name, own = rules
    assert re.match(own[0], "x.apps.10-88-5-64.hcp.test.") and own[1] == "fd68:6370:5:1::40"
    assert not re.match(own[0], "x.apps.10-88-6-64.hcp.test.")
    assert re.match(by_name[0], "x.apps.fd68-6370-12-1--40.hcp.test.")
    alone = dns.corefile(SIX.addresses, forward=False)
    assert "template IN A hcp.test {\n        rcode NOERROR" in alone
    assert "template IN AAAA hcp.test {\n        rcode NOERROR" not in alone, "the registry's name has one"
    assert "fd68:6370:5::3 registry.hcp.test" in alone


def test_neighbours_are_found_whatever_policies_say_and_nothing_else_is_there() -> None:
    """What kube-router does not judge is what the node's rules drop, all but the search itself."""
    six = BOTH.addresses.six
    assert six is not None
    (daemon,) = [one for one in policy.objects(BOTH.addresses, "i") if one["kind"] == "DaemonSet"]
    args = daemon["spec"]["template"]["spec"]["containers"][0]["args"]
    unjudged = {one.partition("=")[2] for one in args if one.startswith("--service-external-ip-range=")}
    gateways = {six.gateway_of(index) for index in range(1, MAX_NODES + 1)}
    assert unjudged - {stack.load_balancers for stack in BOTH.addresses.stacks} == {
        *("fe80::/10", "ff02::1:ff00:0/104"),
        *(f"{one}/128" for one in gateways),
    }
    (dropped,) = [line for line in node_rules(BOTH.addresses).splitlines() if "!= icmpv6 ct state new drop" in line]
    assert all(f"{one}" in dropped for one in gateways)


def test_rules_name_protocols_that_nft_knows_without_a_list_of_the_machine() -> None:
    """`ipv6-icmp` is a name of /etc/protocols, which minimal machines do not have; `icmpv6` is a word of nft."""
    known = {"tcp", "udp", "icmpv6"}
    named = re.findall(r"meta l4proto (?:!= )?(?:\{ (.*?) \}|(\S+))", node_rules(BOTH.addresses))
    assert {word for one in named for word in "".join(one).split(", ")} <= known and named


def test_sets_of_ipv6_addresses_are_asked_for_by_their_names() -> None:
    found = {one["kind"]: one for one in policy.objects(BOTH.addresses, "i")}
    text = found["ConfigMap"]["data"]["ip6tables-restore"]
    pod = found["DaemonSet"]["spec"]["template"]["spec"]
    path = next(one["value"] for one in pod["containers"][0]["env"] if one["name"] == "PATH")
    mount = next(one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "tools")
    assert path.split(":")[0] == mount["mountPath"]
    program = text.splitlines()[1].partition(" | ")[0]
    rule = "-A X -m set --match-set KUBE-SRC-A src -m set --match-set inet6:KUBE-DST-B dst -j ACCEPT"
    done = subprocess.run(["sh", "-c", program], input=rule, capture_output=True, text=True, check=True).stdout
    assert done.strip() == rule.replace("set KUBE-", "set inet6:KUBE-")
    assert "ConfigMap" not in {one["kind"] for one in policy.objects(FOUR.addresses, "i")}


def test_dns_and_router_answer_on_both() -> None:
    (kube_dns,) = [one for one in dns.objects(BOTH.addresses, "i", forward=False) if one["kind"] == "Service"]
    assert kube_dns["spec"]["clusterIPs"] == ["10.197.0.10", "fd68:6370:5:200::a"]
    (front,) = [one for one in router.objects(BOTH.addresses, "i") if one["kind"] == "Service"]
    assert front["spec"]["ipFamilyPolicy"] == "PreferDualStack"
    (network,) = [one for one in config.objects(BOTH.addresses, "PEM") if one["kind"] == "Network"]
    assert network["spec"]["clusterNetwork"][1] == {"cidr": "fd68:6370:5:100::/56", "hostPrefix": 64}


def balanced(*families: str, has: tuple[str, ...] = ()) -> dict[str, Any]:
    status = {"loadBalancer": {"ingress": [{"ip": one} for one in has]}}
    return {"spec": {"type": "LoadBalancer", "ipFamilies": list(families)}, "status": status}


def test_load_balancers_have_an_address_of_each_of_their_families() -> None:
    pairs = [(stack.load_balancers, stack.router) for stack in BOTH.addresses.stacks]

    def wanted(key: str, service: dict[str, Any], *taken: str) -> list[str] | None:
        return wanted_addresses(key, service, pairs, taken)

    assert wanted("a/b", balanced("IPv4")) == ["10.88.5.65"]
    assert wanted("a/b", balanced("IPv6", "IPv4")) == ["fd68:6370:5:1::41", "10.88.5.65"]
    assert wanted("a/b", balanced("IPv4", "IPv6", has=("10.88.5.70",))) == ["10.88.5.70", "fd68:6370:5:1::41"]
    assert wanted("a/b", balanced("IPv4", "IPv6"), "fd68:6370:5:1::41") == ["10.88.5.65", "fd68:6370:5:1::42"]
    assert wanted("openshift-ingress/router-default", balanced("IPv4", "IPv6")) == [
        *("10.88.5.64", "fd68:6370:5:1::40"),
    ]
    written_out = balanced("IPv6")
    written_out["spec"]["loadBalancerIP"] = "fd68:6370:5:1:0:0:0:0040"
    assert wanted("a/b", written_out) == ["fd68:6370:5:1::41"], "the router's, however it is written"
    assert wanted_addresses("a/b", balanced("IPv6"), pairs[:1], ()) is None
    assert wanted_addresses("a/b", {"spec": {"type": "LoadBalancer"}}, pairs[:1], ()) == ["10.88.5.65"]


def test_the_family_of_a_cluster_stays(layout: Layout) -> None:
    layout.make()
    specs.save(layout, Spec("t", "api", None, 1, 2, 3))
    assert plan(layout, None, IPV4).ip_family == IPV4
    with pytest.raises(HcpError, match="made with --ip-family ipv4, which cannot become dual"):
        plan(layout, None, DUAL)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (Spec("t", "api", ip_family=DUAL), "for clusters with a node"),
        (Spec("t", "kubevirt", ip_family=IPV6), "Virtual machines need IPv4"),
        (replace(BOTH, extras=["metallb"]), "--with metallb"),
    ],
)
def test_what_cannot_be_had_is_refused_before_anything_is_written(spec: Spec, why: str) -> None:
    with pytest.raises(HcpError, match=why):
        check_family(spec)


def test_a_new_cluster_that_is_refused_leaves_no_family_behind(layout: Layout) -> None:
    with pytest.raises(HcpError, match="--with metallb"):
        plan(layout, "cluster", DUAL, ["metallb"])
    assert specs.load(layout) is None


def test_what_can_be_had_is_not_refused() -> None:
    for spec in (FOUR, BOTH, SIX, replace(FOUR, extras=["metallb"]), replace(BOTH, profile="kubevirt")):
        check_family(spec)
