"""Address plans: functions of a number, never overlapping."""

from __future__ import annotations

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from hcp.local.network.addresses import MAX_CLUSTERS, Addresses

NUMBERS = st.integers(0, MAX_CLUSTERS - 1)


def test_first_cluster() -> None:
    plan = Addresses(0)
    assert (plan.host, plan.node, plan.router) == ("10.88.0.1", "10.88.0.2", "10.88.0.64")
    assert (plan.pods, plan.services, plan.dns) == ("10.160.0.0/16", "10.192.0.0/16", "10.192.0.10")
    assert plan.apps_domain == "apps.10-88-0-64.hcp.test"


@given(NUMBERS, NUMBERS)
def test_two_clusters_never_overlap(one: int, other: int) -> None:
    if one == other:
        return
    first, second = Addresses(one), Addresses(other)
    mine = [ipaddress.ip_network(text) for text in (first.link_range, first.pods, first.services)]
    theirs = [ipaddress.ip_network(text) for text in (second.link_range, second.pods, second.services)]
    assert not any(a.overlaps(b) for a in mine for b in theirs)


@given(NUMBERS)
def test_ranges_of_one_cluster(number: int) -> None:
    plan = Addresses(number)
    balancers = ipaddress.IPv4Network(plan.load_balancers)
    assert balancers.subnet_of(ipaddress.IPv4Network(plan.link_range))
    assert ipaddress.ip_address(plan.node) not in balancers
    assert ipaddress.ip_address(plan.router) == balancers[0]
    assert ipaddress.ip_address(plan.dns) in ipaddress.ip_network(plan.services)
    assert not ipaddress.ip_network(plan.pods).overlaps(ipaddress.ip_network(plan.services))
    assert len(plan.link) <= 15
