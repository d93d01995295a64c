"""What a cluster's processes see of the person's environment."""

from __future__ import annotations

from hcp.local.supervisor.environment import LOCAL, environment


def test_without_a_proxy_nothing_is_added() -> None:
    assert environment({"A": "1", "NO_PROXY": "x"}, {"B": "2"}) == {"A": "1", "B": "2", "NO_PROXY": "x"}


def test_a_proxy_is_for_the_world_outside() -> None:
    made = environment({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "corp.example, localhost"}, {})
    told = made["NO_PROXY"].split(",")
    assert made["no_proxy"] == made["NO_PROXY"]
    assert told[:2] == ["corp.example", "localhost"]
    assert set(LOCAL) <= set(told)
    assert len(told) == len(set(told))
    assert made["HTTPS_PROXY"] == "http://proxy:3128"


def test_every_address_of_every_cluster_is_local() -> None:
    import ipaddress

    from hcp.local.network.addresses import MAX_CLUSTERS, Addresses

    ranges = [ipaddress.IPv4Network(entry) for entry in LOCAL if "/" in entry]
    for number in range(MAX_CLUSTERS):
        plan = Addresses(number)
        for cidr in (plan.link_range, plan.load_balancers, plan.pods, plan.services):
            assert any(ipaddress.IPv4Network(cidr).subnet_of(known) for known in ranges), cidr
