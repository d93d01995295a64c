"""`local node add`: let nodes join an embedded cluster."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag
from hcp.cli.local.common import NAME

COMMAND = Command(
    "local node add",
    "Let nodes join an embedded cluster",
    long=(
        "Each node has namespaces, a kubelet, a containerd and a kube-proxy of its own and shares the volumes and the "
        "registry of the first. Pods keep their addresses between nodes. What joined once comes back with "
        "`{prog} local up`."
    ),
    examples=(("Two more", "sudo {prog} local node add --count 2"),),
    flags=(NAME, Flag("count", "int", 1, "how many")),
    handler="hcp.cli.local.node.add:run",
)


def run(call: Call) -> int:
    from hcp.cli.engine.terminal import end_like_an_interrupt, note
    from hcp.local.lifecycle.members import add

    end_like_an_interrupt()
    for node in add(call.text("name"), call.number("count"), note):
        print(f"Node {node.name} joined at {node.address}")
    return 0
