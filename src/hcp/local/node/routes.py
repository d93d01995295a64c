"""Addresses and routes inside a node's network namespace, as arguments of `ip`. Pure.

Nodes share no wire: each has a link of its own to the machine, which leads packets from one to the other. A pod keeps
its address on the way.
"""

from __future__ import annotations

from hcp.local.network.addresses import Stack
from hcp.local.network.addresses6 import Addresses6
from hcp.local.state.nodes import Node


def inside(node: Node) -> list[list[str]]:
    return [command for stack in node.links for command in _stack(node, stack)]


def _stack(node: Node, plan: Stack) -> list[list[str]]:
    """Of one family."""
    six = isinstance(plan, Addresses6)
    wire, single = ("64", "128") if six else ("24", "32")
    # Nobody else is on the wire: to look for another owner of the address takes a second.
    at_once = ["nodad"] if six else []
    address = plan.node_of(node.index)
    commands = [] if six else [["link", "set", "lo", "up"]]
    if node.is_first:
        commands += [
            ["address", "add", f"{address}/{wire}", "dev", "eth0", *at_once],
            ["link", "set", "eth0", "up"],
            ["route", "add", "default", "via", plan.host],
            ["route", "add", plan.joined_nodes, "via", plan.host],
            # Whatever of the range no Service has is ours: a closed port then says so at once instead of nothing.
            ["route", "add", "local", plan.load_balancers, "dev", "lo"],
            ["address", "add", f"{plan.registry}/{single}", "dev", "lo", *at_once],
        ]
    else:
        commands += [
            ["address", "add", f"{address}/{single}", "dev", "eth0", *at_once],
            ["link", "set", "eth0", "up"],
            ["route", "add", plan.host, "dev", "eth0", "scope", "link"],
            ["route", "add", "default", "via", plan.host],
        ]
    # Each pod has a route of its own; whatever nobody has is refused here instead of being sent to the world.
    return [*commands, ["route", "add", "unreachable", plan.pods_of(node.index)]]
