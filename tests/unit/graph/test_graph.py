"""The update graph: reading it, choosing channels and versions, and the way between two of them."""

from __future__ import annotations

import json

import pytest

from hcp import graph
from hcp.errors import HcpError

CHANNELS = "io.openshift.upgrades.graph.release.channels"


def _document() -> dict[str, object]:
    def node(version: str, channels: str) -> dict[str, object]:
        return {"version": version, "payload": f"quay.example/release:{version}", "metadata": {CHANNELS: channels}}

    return {
        "nodes": [
            node("1.35.0", "stable-1.35"),
            node("1.35.9", "stable-1.35,stable-1.36"),
            node("1.35.10", "stable-1.35,stable-1.36"),
            node("1.36.0", "stable-1.36"),
            node("1.36.0-rc.1", "candidate-1.36"),
            node("1.36.1", "stable-1.36"),
        ],
        "edges": [[0, 1], [0, 2], [1, 3], [2, 3], [3, 5]],
        "conditionalEdges": [
            {
                "edges": [{"from": "1.35.10", "to": "1.36.1"}],
                "risks": [
                    {
                        "name": "SlowDisks",
                        "message": "slow disks get slower",
                        "url": "https://example.com/slow",
                        "matchingRules": [{"type": "Always"}],
                    }
                ],
            }
        ],
    }


@pytest.fixture
def known() -> graph.Graph:
    return graph.parse(json.dumps(_document()))


def test_versions_are_ordered_by_their_numbers(known: graph.Graph) -> None:
    assert known.versions == ["1.35.0", "1.35.9", "1.35.10", "1.36.0-rc.1", "1.36.0", "1.36.1"]


@pytest.mark.parametrize(
    ("older", "newer"),
    [("1.2.3", "1.2.10"), ("4.17.0-rc.9", "4.17.0-rc.10"), ("4.17.0-rc.1", "4.17.0"), ("v1.9", "1.10.0")],
)
def test_the_newer_version_is_known(older: str, newer: str) -> None:
    assert graph.order(older) < graph.order(newer)


def test_a_word_is_no_version() -> None:
    with pytest.raises(HcpError, match='"latest" is no version'):
        graph.Version.parse("latest")
    assert graph.order("latest") < graph.order("0.0.1")


def test_a_channel_has_its_nodes_and_the_updates_between_them(known: graph.Graph) -> None:
    stable = known.channel("stable-1.36")
    assert stable.versions == ["1.35.9", "1.35.10", "1.36.0", "1.36.1"]
    assert ("1.35.0", "1.35.9") not in stable.edges
    assert ("1.36.0", "1.36.1") in stable.edges
    assert [one.end for one in stable.conditional] == ["1.36.1"]
    assert known.channels == ["candidate-1.36", "stable-1.35", "stable-1.36"]


def test_a_graph_that_names_no_channels_is_the_one_that_was_asked_for() -> None:
    found = graph.parse(b'{"nodes":[{"version":"1.0.0","payload":"a/b:c"}],"edges":[]}')
    assert found.channel("anything").versions == ["1.0.0"]


def test_updates_without_and_with_risks(known: graph.Graph) -> None:
    assert [node.version for node in known.updates("1.35.10")] == ["1.36.0"]
    ((node, risks),) = known.conditional_updates("1.35.10")
    assert (node.version, risks[0].name, risks[0].rules) == ("1.36.1", "SlowDisks", ({"type": "Always"},))
    assert known.updates("1.36.1") == []


def test_the_shortest_way_avoids_risks_and_prefers_what_is_newer(known: graph.Graph) -> None:
    assert known.shortest_path("1.35.0", "1.36.1") == ["1.35.0", "1.35.10", "1.36.0", "1.36.1"]
    assert known.shortest_path("1.36.0", "1.36.0") == ["1.36.0"]


def test_a_risky_way_is_better_than_none(known: graph.Graph) -> None:
    edges = frozenset(edge for edge in known.edges if edge[1] != "1.36.0")
    without = graph.Graph(known.nodes, edges, known.conditional)
    assert without.shortest_path("1.35.0", "1.36.1") == ["1.35.0", "1.35.10", "1.36.1"]


def test_no_way_and_no_such_version_are_said(known: graph.Graph) -> None:
    with pytest.raises(graph.GraphError, match=r"no way from 1\.36\.1 to 1\.35\.0"):
        known.shortest_path("1.36.1", "1.35.0")
    with pytest.raises(graph.GraphError, match=r"no version 1\.36\.7") as caught:
        known.shortest_path("1.35.0", "1.36.7")
    assert "1.36.1" in str(caught.value.hint)


def test_versions_between_two(known: graph.Graph) -> None:
    assert known.between("1.35.9", "1.36.0") == ["1.35.9", "1.35.10", "1.36.0-rc.1", "1.36.0"]
    assert known.between(highest="1.35.9") == ["1.35.0", "1.35.9"]
    assert known.between() == known.versions


def test_what_is_written_is_read_again(known: graph.Graph) -> None:
    again = graph.parse(graph.dump(known))
    assert again == known
    assert graph.dump(again) == graph.dump(known)


def test_two_graphs_make_one(known: graph.Graph) -> None:
    halves = known.channel("stable-1.35").merged(known.channel("stable-1.36"))
    assert halves.versions == [v for v in known.versions if v != "1.36.0-rc.1"]
    assert halves.merged(halves) == halves


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"nodes": 3}', '{"nodes": [3]}', '{"nodes": [{"version": "1"}]}', '{"nodes":[],"edges":[[0,1]]}'],
)
def test_what_is_no_graph_is_said(text: str) -> None:
    with pytest.raises(graph.GraphError, match="the update graph"):
        graph.parse(text)
