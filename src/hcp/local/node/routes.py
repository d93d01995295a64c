"""Addresses and routes inside a node's network namespace, as arguments of `ip`. Pure.

Nodes share no wire: each has a link of its own to the machine, which leads packets from one to the other. A pod keeps
its address on the way.
"""

from __future__ import annotations

from hcp.local.state.nodes import Node


def inside(node: Node) -> list[list[str]]:
    plan = node.plan
    commands = [["link", "set", "lo", "up"]]
    if node.is_first:
        commands += [
            ["address", "add", f"{node.address}/24", "dev", "eth0"],
            ["link", "set", "eth0", "up"],
            ["route", "add", "default", "via", plan.host],
            ["route", "add", plan.joined_nodes, "via", plan.host],
            # Whatever of the range no Service has is ours: a closed port then says so at once instead of nothing.
            ["route", "add", "local", plan.load_balancers, "dev", "lo"],
            ["address", "add", f"{plan.registry}/32", "dev", "lo"],
        ]
    else:
        commands += [
            ["address", "add", f"{node.address}/32", "dev", "eth0"],
            ["link", "set", "eth0", "up"],
            ["route", "add", plan.host, "dev", "eth0", "scope", "link"],
            ["route", "add", "default", "via", plan.host],
        ]
    # Each pod has a route of its own; whatever nobody has is refused here instead of being sent to the world.
    return [*commands, ["route", "add", "unreachable", node.pods]]
