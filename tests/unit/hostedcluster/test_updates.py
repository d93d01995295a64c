"""What a status says of updates, from a graph."""

from __future__ import annotations

from typing import Any

import pytest

from hcp import graph
from hcp.api import conditions as c
from hcp.errors import HcpError
from hcp.hostedcluster.update_source import question
from hcp.hostedcluster.update_status import MOST_UPDATES, failed, found, told
from hcp.publish.graph import of_releases

DIGEST = "sha256:" + "0" * 64
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def image(version: str) -> str:
    return f"r.example.com/team/release:{version}@{DIGEST}"


def releases(*versions: str) -> graph.Graph:
    return of_releases({version: image(version) for version in versions})


def risky(*rules: str) -> graph.Graph:
    base = releases("1.36.2", "1.36.3")
    risk = graph.Risk("Slow", "disks are slow", "https://e", tuple({"type": rule} for rule in rules))
    return graph.Graph(base.nodes, frozenset(), (graph.ConditionalEdge("1.36.2", "1.36.3", (risk,)),))


def version(text: str = "1.36.2") -> dict[str, Any]:
    return {"desired": {"image": "i", "version": text}, "history": []}


def test_a_control_plane_moves_within_its_minor_or_to_the_next() -> None:
    known = releases("1.34.9", "1.35.1", "1.35.4", "1.36.0", "1.36.3")
    assert [n.version for n in known.updates("1.35.1")] == ["1.36.3", "1.36.0", "1.35.4"]
    assert [n.version for n in known.updates("1.34.9")] == ["1.35.4", "1.35.1"]
    assert known.updates("1.36.3") == []
    assert [n.version for n in known.channel("stable-1.35").updates("1.35.1")] == ["1.35.4"]


def test_what_was_published_before_stays_and_a_new_build_counts() -> None:
    before = releases("1.35.4", "1.36.3")
    after = of_releases({"1.36.3": "r.example.com/new@" + DIGEST}, before)
    assert sorted(after.nodes) == ["1.35.4", "1.36.3"]
    assert after.nodes["1.36.3"].payload == "r.example.com/new@" + DIGEST
    assert graph.dump(of_releases({}, after)) == graph.dump(after)


def test_a_channel_offers_newer_releases() -> None:
    seen = found(releases("1.35.4", "1.36.2", "1.36.3"), "stable-1.36", "1.36.2")
    assert seen.verdict == (True, c.AS_EXPECTED, "")
    status = told(version(), seen, None, NOW, following=True)
    assert [one["version"] for one in status["availableUpdates"]] == ["1.36.3"]
    assert status["availableUpdates"][0]["image"] == image("1.36.3")
    assert status["desired"]["channels"] == ["candidate-1.36", "stable-1.36"]
    assert "conditionalUpdates" not in status


def test_a_version_that_the_channel_does_not_have_is_said() -> None:
    value, reason, message = found(releases("1.35.4", "1.36.2"), "stable-1.35", "1.36.2").verdict
    assert (value, reason) == (False, c.VERSION_NOT_FOUND)
    assert "1.35.4" in message


@pytest.mark.parametrize(("rule", "status"), [("Always", "False"), ("PromQL", "Unknown")])
def test_risks_are_told_and_their_time_stays(rule: str, status: str) -> None:
    seen = found(risky(rule), "stable-1.36", "1.36.2")
    first = told(version(), seen, None, NOW, following=True)
    (update,) = first["conditionalUpdates"]
    assert first["availableUpdates"] == []
    assert update["risks"][0]["name"] == "Slow"
    assert update["conditions"][0]["status"] == status
    assert told(version(), seen, first, LATER, following=True) == first, "nothing is written when nothing changed"


def test_while_nothing_is_known_what_was_said_stays() -> None:
    seen = found(releases("1.36.2", "1.36.3"), "stable-1.36", "1.36.2")
    before = told(version(), seen, None, NOW, following=True)
    assert told(version(), None, before, LATER, following=True) == before
    assert told(version("1.36.3"), None, before, LATER, following=True)["availableUpdates"] == [], "of another version"
    assert told(version(), None, before, LATER, following=False) == {**version(), "availableUpdates": []}


def test_nothing_is_offered_while_the_graph_cannot_be_read() -> None:
    before = told(version(), found(releases("1.36.2", "1.36.3"), "stable-1.36", "1.36.2"), None, NOW, following=True)
    assert told(version(), failed("RemoteFailed", "no"), before, LATER, following=True)["availableUpdates"] == []


def test_what_a_service_sends_is_bounded() -> None:
    ours = {f"1.36.{n}": graph.Node(f"1.36.{n}", image(f"1.36.{n}")) for n in range(500)}
    bad = {"1.36.900": graph.Node("1.36.900", "not an image!"), "x" * 999: graph.Node("x" * 999, image("1"))}
    nodes = {**ours, **bad}
    seen = found(graph.Graph(nodes, frozenset(("1.36.0", end) for end in nodes if end != "1.36.0")), "any", "1.36.0")
    assert len(seen.available) == MOST_UPDATES
    assert all(one["image"].startswith("r.example.com") for one in seen.available)


def test_the_graph_is_beside_the_release_unless_the_spec_names_a_place() -> None:
    release = "r.example.com:5000/team/hcp/release@" + DIGEST
    assert question({"channel": "c"}, release, "1.36.2", "amd64").image == "r.example.com:5000/team/hcp/graph:latest"
    assert question({}, "r.example.com/release:1", "1", "amd64").image == "r.example.com/graph:latest"
    spec = {"channel": "c", "updateService": "docker://m.example.com/x/graph-image:v1"}
    assert question(spec, release, "1.36.2", "amd64").image == "m.example.com/x/graph-image:v1"
    spec = {"channel": "c", "updateService": "https://u.example.com/graph?a=b", "clusterID": "7"}
    url = question(spec, release, "1.36.2", "amd64").url
    assert url == "https://u.example.com/graph?a=b&channel=c&arch=amd64&version=1.36.2&id=7"


@pytest.mark.parametrize("service", ["http://u.example.com/graph", "file:///etc/passwd", "https:///x", "gopher://a"])
def test_other_ways_are_not_gone(service: str) -> None:
    with pytest.raises(HcpError, match=r"is not asked|is no URL"):
        question({"channel": "c", "updateService": service}, "r.example.com/release:1", "1", "amd64")
