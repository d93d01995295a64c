"""Taking back what the end of the namespaces does not take back by itself."""

from __future__ import annotations

from hcp.csi.local.names import loop_label
from hcp.errors import HcpError
from hcp.linux import loop
from hcp.local.host import machine
from hcp.local.node import cgroups, volumes
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import Node, first, joined
from hcp.local.state.spec import Spec
from hcp.local.supervisor import control


def clean_machine(layout: Layout, spec: Spec) -> None:
    """Everything of the nodes that do not run any more, and with the last of them the device of the volumes."""
    running = False
    for node in [*joined(spec), first(spec)]:
        if control.running(node.layout(layout)) is None:
            clean_node(layout, node)
        else:
            running = True
    if not running:
        volumes.wait_released(layout)


def clean_node(layout: Layout, node: Node) -> None:
    """Link, routes, rules, kernel settings, cgroups. Must run after the node's supervisor ended."""
    machine.disconnect(node, layout.tools())
    cgroups.remove(node.name)
    loop.detach_labelled(loop_label(node.name))  # block volumes of pods that were not asked before they ended
    if left := cgroups.left(node.name):
        raise HcpError(
            f"Some cgroups of node '{node.name}' could not be removed",
            cause=", ".join(str(path) for path in left),
            hint="A process that cannot be killed holds them; try again in a moment.",
        )
