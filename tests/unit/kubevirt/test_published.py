"""Which addresses and ports machines are let through to, whatever a user writes as the address of a node port."""

from __future__ import annotations

from typing import Any

import pytest

from hcp.kubevirt.isolation_report import node_ports
from hcp.kubevirt.published import OnNodes, Published, Resolver, on_nodes, published

NODES = ("192.0.2.1", "192.0.2.2")


class Names(Resolver):
    """Answers from a table instead of DNS."""

    def __init__(self, **known: set[str]) -> None:
        super().__init__()
        self.known = known

    async def addresses(self, host: str) -> frozenset[str]:
        return frozenset(self.known[host]) if host in self.known else await super().addresses(host)


def node_port(host: str, port: int = 30443) -> Published:
    return Published("APIServer", "NodePort", (host,), port)


async def test_a_node_is_let_through_at_the_node_port_only() -> None:
    seen = await on_nodes([node_port("192.0.2.1")], NODES, Names())
    assert seen == OnNodes((("192.0.2.1", 30443),))


@pytest.mark.parametrize("host", ["10.128.0.7", "169.254.169.254", "172.30.0.1", "198.51.100.1", "::1"])
async def test_an_address_that_no_node_has_is_named_and_not_let_through(host: str) -> None:
    seen = await on_nodes([node_port(host)], NODES, Names())
    assert seen.targets == ()
    assert host in seen.problems[0] and "APIServer" in seen.problems[0]


async def test_a_name_opens_the_nodes_behind_it_and_nothing_else() -> None:
    names = Names(api={"192.0.2.2", "10.128.0.7"}, nowhere=set())
    seen = await on_nodes([node_port("api")], NODES, names)
    assert seen == OnNodes((("192.0.2.2", 30443),), (), names=True)
    seen = await on_nodes([node_port("nowhere")], NODES, names)
    assert seen.targets == () and "cannot be resolved" in seen.problems[0]


async def test_routes_on_nodes_open_their_port_and_elsewhere_nothing() -> None:
    names = Names(apps={"192.0.2.1"}, far={"198.51.100.1"})
    route = Published("Konnectivity", "Route", ("apps", "far"), 443)
    assert await on_nodes([route], NODES, names) == OnNodes((("192.0.2.1", 443),), (), names=True)


SERVICE: dict[str, Any] = {
    "spec": {"ports": [{"port": 6443, "nodePort": 30443}]},
    "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
}


def test_ports_come_from_the_cluster_and_not_from_the_user() -> None:
    asked = {"type": "NodePort", "nodePort": {"address": "192.0.2.1", "port": 10250}}
    assert published("APIServer", asked, SERVICE, None) == node_port("192.0.2.1")
    assert published("APIServer", asked, None, None) is None
    balanced = {"type": "LoadBalancer", "loadBalancer": {"hostname": "node-a.example"}}
    assert published("APIServer", balanced, SERVICE, None) == Published("APIServer", "LoadBalancer", NODES[:1], 6443)
    route = {"type": "Route", "route": {"hostname": "a.example"}}
    assert published("APIServer", route, SERVICE, None) == Published("APIServer", "Route", ("a.example",), 443)


def test_only_clusters_with_node_ports_hear_of_them() -> None:
    spec = {"services": [{"service": "APIServer", "servicePublishingStrategy": {"type": "NodePort"}}]}
    assert node_ports({}, OnNodes()) is None
    good, bad = node_ports(spec, OnNodes()), node_ports(spec, OnNodes(problems=("x",)))
    assert good is not None and good[0] is True
    assert bad == (False, "NotANodeAddress", "x")
