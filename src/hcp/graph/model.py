"""Nodes, edges and paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hcp.errors import HcpError
from hcp.graph.version import Version, order

CHANNELS = "io.openshift.upgrades.graph.release.channels"


class GraphError(HcpError):
    """The graph cannot be read, or does not have what was asked of it."""


@dataclass(frozen=True, slots=True)
class Node:
    """One release: its version, its image, and what else the graph says of it."""

    version: str
    payload: str
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def channels(self) -> tuple[str, ...]:
        said = str(self.metadata.get(CHANNELS) or "")
        return tuple(one.strip() for one in said.split(",") if one.strip())


@dataclass(frozen=True, slots=True)
class Risk:
    """Why an update is not for everybody, and who is concerned: `rules` as the protocol has them."""

    name: str
    message: str
    url: str = ""
    rules: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class ConditionalEdge:
    start: str
    end: str
    risks: tuple[Risk, ...]


@dataclass(frozen=True)
class Graph:
    """Releases by version, and the updates between them."""

    nodes: Mapping[str, Node] = field(default_factory=dict)
    edges: frozenset[tuple[str, str]] = frozenset()
    conditional: tuple[ConditionalEdge, ...] = ()

    @property
    def channels(self) -> list[str]:
        return sorted({channel for node in self.nodes.values() for channel in node.channels})

    @property
    def versions(self) -> list[str]:
        """Oldest first."""
        return sorted(self.nodes, key=order)

    def channel(self, name: str) -> Graph:
        """The part of one channel. A graph whose nodes name no channels is of the channel that was asked for."""
        if not self.channels:
            return self
        return self.only(version for version, node in self.nodes.items() if name in node.channels)

    def only(self, versions: Iterable[str]) -> Graph:
        kept = {version: self.nodes[version] for version in versions}
        edges = frozenset((start, end) for start, end in self.edges if start in kept and end in kept)
        conditional = tuple(one for one in self.conditional if one.start in kept and one.end in kept)
        return Graph(kept, edges, conditional)

    def merged(self, other: Graph) -> Graph:
        return Graph(
            {**self.nodes, **other.nodes},
            self.edges | other.edges,
            (*self.conditional, *(one for one in other.conditional if one not in self.conditional)),
        )

    def updates(self, version: str) -> list[Node]:
        """Where one may go from a version without any risk known, newest first."""
        ends = {end for start, end in self.edges if start == version}
        risky = {one.end for one in self.conditional if one.start == version}
        return [self.nodes[end] for end in sorted(ends - risky, key=order, reverse=True)]

    def conditional_updates(self, version: str) -> list[tuple[Node, tuple[Risk, ...]]]:
        """Where one may go from a version if its risks do not concern one, newest first."""
        risks: dict[str, list[Risk]] = {}
        for one in self.conditional:
            if one.start == version:
                known = risks.setdefault(one.end, [])
                known += [risk for risk in one.risks if risk not in known]
        return [(self.nodes[end], tuple(risks[end])) for end in sorted(risks, key=order, reverse=True)]

    def between(self, lowest: str = "", highest: str = "") -> list[str]:
        """The versions from one to another, both included, oldest first."""
        low = Version.parse(lowest) if lowest else None
        high = Version.parse(highest) if highest else None
        return [
            version
            for version in self.versions
            if (low is None or order(version) >= low) and (high is None or order(version) <= high)
        ]

    def shortest_path(self, start: str, end: str) -> list[str]:
        """The fewest updates from one version to another; of equal ones that over the newest. Risky ones only if no
        other way is there."""
        for version in (start, end):
            if version not in self.nodes:
                raise GraphError(f"the update graph has no version {version}", hint=f"it has {self._some()}")
        risky = self.edges | {(one.start, one.end) for one in self.conditional}
        for edges in (self.edges, risky):
            found = _shortest(edges, start, end)
            if found:
                return found
        raise GraphError(
            f"the update graph knows no way from {start} to {end}", hint="name versions that updates lead between"
        )

    def _some(self) -> str:
        newest = self.versions[::-1]
        return ", ".join(newest[:8]) + (f" and {len(newest) - 8} older ones" if len(newest) > 8 else "")


def _shortest(edges: Iterable[tuple[str, str]], start: str, end: str) -> list[str]:
    following: dict[str, list[str]] = {}
    for one, other in edges:
        following.setdefault(one, []).append(other)
    came_from = {start: ""}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        if here == end:
            path = [here]
            while came_from[path[-1]]:
                path.append(came_from[path[-1]])
            return path[::-1]
        for there in sorted(following.get(here, ()), key=order, reverse=True):
            if there not in came_from:
                came_from[there] = here
                waiting.append(there)
    return []
