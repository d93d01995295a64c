"""Firewalls of the machine's owner: what is seen, and what is said."""

from __future__ import annotations

import pytest

from hcp.local.host import docker, forwarding

DOCKER = """\
-P INPUT ACCEPT
-P FORWARD DROP
-P OUTPUT ACCEPT
-N DOCKER-USER
-A FORWARD -j DOCKER-USER
"""


def rules(*there: str) -> list[str]:
    return docker.rules("hcp5", ["eth0"], there).splitlines()


def test_nodes_get_out_by_links_that_lead_out_and_answers_come_back() -> None:
    found = rules("-N DOCKER-USER")
    assert found[:2] == ["*filter", ":HCP-5 - [0:0]"] and found[-1] == "COMMIT"
    assert "-A HCP-5 -i hcp5 -o eth0 -j ACCEPT" in found and "-A HCP-5 -i hcp5n+ -o eth0 -j ACCEPT" in found
    assert "-A HCP-5 -o hcp5 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT" in found
    inwards = [line for line in found if " -o hcp5 " in line or " -o hcp5n+ " in line]
    assert all("RELATED,ESTABLISHED" in line for line in inwards), "nobody else is let in"


def test_what_the_owner_wrote_comes_first() -> None:
    mine = "-A DOCKER-USER -d 10.0.0.0/8 -j DROP"
    assert rules("-N DOCKER-USER", mine)[-2] == "-A DOCKER-USER -j HCP-5"
    end = "-A DOCKER-USER -j RETURN"
    assert rules("-N DOCKER-USER", mine, end)[-2] == "-I DOCKER-USER 2 -j HCP-5"
    assert "DOCKER-USER" not in str(rules("-N DOCKER-USER", "-A DOCKER-USER -j HCP-5", end))


@pytest.mark.parametrize(
    "allowed",
    ["-A DOCKER-USER -j HCP-5", "-A FORWARD -i hcp+ -j ACCEPT", "-A ufw-user-forward -i hcp5 -j ACCEPT"],
)
def test_a_firewall_that_knows_our_links_is_left_in_peace(allowed: str) -> None:
    assert forwarding.passes(f"{DOCKER}{allowed}\n", "hcp5")


@pytest.mark.parametrize(
    "other",
    ["", "-A HCP-5 -i hcp5 -o eth0 -j ACCEPT", "-A FORWARD -i hcp50 -j ACCEPT", "-A DOCKER-USER -j HCP-50"],
)
def test_a_firewall_that_does_not_is_told(other: str) -> None:
    assert not forwarding.passes(f"{DOCKER}{other}\n", "hcp5")


def test_one_that_forwards_is_none() -> None:
    assert forwarding.passes("-P FORWARD ACCEPT\n", "hcp5") and forwarding.passes("", "hcp5")


def test_chains_that_drop_what_is_forwarded_are_found() -> None:
    forward = {"family": "inet", "table": "mine", "name": "through", "hook": "forward", "policy": "drop"}
    others = [
        {**forward, "policy": "accept"},
        {**forward, "hook": "input"},
        {**forward, "family": "bridge"},
        {"family": "ip", "table": "nat", "name": "plain"},
    ]
    assert forwarding.dropping([*others, forward]) == [("inet", "mine", "through")]


def test_names_in_rules_are_the_cluster_s_own() -> None:
    for text in ('iifname "hcp5" accept', 'iifname "hcp5*" accept', 'iifname { "eth0", "hcp*" } accept'):
        assert forwarding.names(text, "hcp5")
    for text in ('iifname "hcp50" accept', 'iifname "eth0" accept', 'iifname "hcp1*" accept'):
        assert not forwarding.names(text, "hcp5")
