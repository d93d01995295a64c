"""Writing what the processes of one node read."""

from __future__ import annotations

from hcp.local.addons.images import references
from hcp.local.node.processes import may_lower_oom_score, write_configuration
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import Node
from hcp.local.state.parts import Parts


def configure(node: Node, layout: Layout, found: Parts) -> None:
    """`layout` is the node's."""
    pause = references({"image-pause": found.paths["image-pause"]})["pause"]
    write_configuration(node, layout, found.binaries(), pause, may_lower_oom_score=may_lower_oom_score())
