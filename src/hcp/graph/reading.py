"""The graph as JSON: nodes in a list, edges by place in that list, conditional edges by version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hcp.graph.model import ConditionalEdge, Graph, GraphError, Node, Risk

# Where an image that carries a graph has it.
GRAPH_FILE = "graph/graph.json"
MOST_NODES = 20_000


def parse(data: bytes | str) -> Graph:
    """Read a graph; GraphError says what is wrong with it."""
    try:
        document = json.loads(data)
        if not isinstance(document, Mapping) or not isinstance(document.get("nodes"), list):
            raise GraphError("the update graph has no list of nodes", hint="it has to be JSON as Cincinnati serves it")
        listed = [_node(one) for one in document["nodes"][:MOST_NODES]]
        edges = frozenset((listed[one].version, listed[other].version) for one, other in document.get("edges") or ())
        nodes = {node.version: node for node in listed}
        conditional = tuple(
            ConditionalEdge(str(edge["from"]), str(edge["to"]), tuple(_risk(risk) for risk in group["risks"]))
            for group in document.get("conditionalEdges") or ()
            for edge in group["edges"]
            if edge["from"] in nodes and edge["to"] in nodes
        )
    except GraphError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise GraphError(
            "the update graph cannot be read", cause=repr(error), hint="it has to be JSON as Cincinnati serves it"
        ) from error
    return Graph(nodes, edges, conditional)


def dump(graph: Graph) -> bytes:
    """The same graph always gives the same bytes."""
    versions = graph.versions
    place = {version: number for number, version in enumerate(versions)}
    ordered = sorted(graph.conditional, key=lambda one: (place[one.end], place[one.start]))
    described = {id(one): json.dumps([_said(risk) for risk in one.risks], sort_keys=True) for one in ordered}
    by_risks: dict[str, tuple[tuple[Risk, ...], list[dict[str, str]]]] = {}
    for one in ordered:
        by_risks.setdefault(described[id(one)], (one.risks, []))[1].append({"from": one.start, "to": one.end})
    document: dict[str, Any] = {
        "nodes": [
            {"version": one, "payload": graph.nodes[one].payload, "metadata": dict(graph.nodes[one].metadata)}
            for one in versions
        ],
        "edges": sorted([place[start], place[end]] for start, end in graph.edges),
        "conditionalEdges": [
            {"edges": edges, "risks": [_said(risk) for risk in risks]} for risks, edges in by_risks.values()
        ],
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _node(one: Mapping[str, Any]) -> Node:
    metadata = {str(key): str(value) for key, value in (one.get("metadata") or {}).items()}
    return Node(str(one["version"]), str(one["payload"]), metadata)


def _risk(one: Mapping[str, Any]) -> Risk:
    rules = tuple(dict(rule) for rule in one.get("matchingRules") or ())
    return Risk(str(one["name"]), str(one.get("message") or ""), str(one.get("url") or ""), rules)


def _said(risk: Risk) -> dict[str, Any]:
    return {"name": risk.name, "message": risk.message, "url": risk.url, "matchingRules": [dict(r) for r in risk.rules]}
