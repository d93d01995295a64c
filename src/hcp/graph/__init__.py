"""The update graph: which release leads to which. Pure; the protocol is that of Cincinnati."""

from hcp.graph.model import ConditionalEdge, Graph, GraphError, Node, Risk
from hcp.graph.reading import GRAPH_FILE, dump, parse
from hcp.graph.version import Version, order

__all__ = [
    "GRAPH_FILE",
    "ConditionalEdge",
    "Graph",
    "GraphError",
    "Node",
    "Risk",
    "Version",
    "dump",
    "order",
    "parse",
]
