"""What a cluster's objects tell of its networks, on OpenShift and on plain Kubernetes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hcp.kubevirt import egress
from hcp.kubevirt.networks import Networks, found


def node(address: str, *cidrs: str) -> dict[str, Any]:
    addresses = [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": "node-a"}]
    return {"kind": "Node", "spec": {"podCIDRs": list(cidrs)}, "status": {"addresses": addresses}}


SLICE = {"ports": [{"port": 6443}], "endpoints": [{"addresses": ["192.0.2.1"]}, {"addresses": ["192.0.2.9"]}]}


def test_the_configuration_comes_first() -> None:
    told = {"clusterNetwork": [{"cidr": "10.128.0.0/14"}], "serviceNetwork": ["172.30.0.0/16"]}
    seen = found({"status": told}, [node("192.0.2.1", "10.1.0.0/24")], [{"spec": {"cidrs": ["10.96.0.0/12"]}}], [])
    assert seen == Networks(("10.128.0.0/14", "172.30.0.0/16"), ("192.0.2.1",))


def test_a_plain_cluster_shows_its_networks_by_its_objects() -> None:
    nodes = [node("192.0.2.1", "10.1.0.0/24"), node("192.0.2.2", "10.1.1.0/24", "fd00::/64")]
    seen = found(None, nodes, [{"spec": {"cidrs": ["10.96.0.0/12"]}}], [SLICE])
    assert seen.inside == ("10.1.0.0/24", "10.1.1.0/24", "10.96.0.0/12", "fd00::/64")
    assert seen.api == (("192.0.2.1", 6443), ("192.0.2.9", 6443))
    assert seen.hidden == [
        *("10.1.0.0/23", "10.96.0.0/12", "192.0.2.1/32", "192.0.2.2/32", "192.0.2.9/32"),
        "fd00::/64",
    ]
    assert seen.machines == ["192.0.2.1/32", "192.0.2.2/32", "192.0.2.9/32"], "those of another cluster's machines"


def test_a_silent_cluster_hides_only_what_is_link_local() -> None:
    assert found(None, [], [], []) == Networks()
    [four, six] = egress.outside([])
    assert four == {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}}
    assert six == {"ipBlock": {"cidr": "::/0", "except": ["fe80::/10"]}}


@given(st.sets(st.ip_addresses(v=4).map(str), max_size=40), st.ip_addresses(v=4))
def test_collapsing_hides_exactly_the_same_addresses(addresses: set[str], probe: Any) -> None:
    import ipaddress

    networks = [ipaddress.ip_network(text) for text in egress.collapsed(map(egress.host_cidr, addresses))]
    for address in [*map(ipaddress.ip_address, addresses), probe]:
        assert any(address in network for network in networks) == (str(address) in addresses)
