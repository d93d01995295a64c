"""The policy for owners of clusters: every port once, without those that are asked for."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hcp.preflight.node_guard import PORTS, manifest


def closed(policy: dict[str, Any]) -> list[int]:
    [rule] = policy["spec"]["egress"]
    assert rule["action"] == "Deny" and rule["to"] == [{"nodes": {}}]
    found: list[int] = []
    for entry in rule["ports"]:
        if "portNumber" in entry:
            found.append(entry["portNumber"]["port"])
        else:
            span = entry["portRange"]
            assert span["start"] < span["end"], "the API wants an end behind the start"
            found += range(span["start"], span["end"] + 1)
    return found


@given(st.sets(st.integers(1, 65535) | st.sampled_from([22, 2380, 6443, 10250, 22624]), max_size=12))
def test_exactly_the_ports_of_nodes_are_closed(without: set[int]) -> None:
    every = {port for first, last in PORTS for port in range(first, last + 1)}
    found = closed(manifest(without))
    assert len(found) == len(set(found)) and set(found) == every - without


def test_only_virtual_machines_are_concerned() -> None:
    subject = manifest()["spec"]["subject"]["pods"]
    assert subject["podSelector"]["matchLabels"] == {"kubevirt.io": "virt-launcher"}
    assert {6443, 10250, 22} <= set(closed(manifest()))
