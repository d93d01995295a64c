"""`local node stop`: stop a node of an embedded cluster, or pull its plug."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag
from hcp.cli.local.common import NAME

COMMAND = Command(
    "local node stop",
    "Stop a node of an embedded cluster, or pull its plug",
    long=(
        "All processes of the node end, its pods and virtual machines with them, and the cluster finds out by itself, "
        "as with a machine that loses power. Without --now they are asked to end first. The first node has the control "
        "plane: `{prog} local down` stops the whole cluster."
    ),
    examples=(("Pull the plug of the third node", "sudo {prog} local node stop 3 --now"),),
    args=(Arg("NODE", "its name or its number"),),
    flags=(NAME, Flag("now", "bool", False, "kill everything at once, as a lost power supply does")),
    handler="hcp.cli.local.node.stop:run",
)


def run(call: Call) -> int:
    from hcp.cli.engine.terminal import note
    from hcp.local.lifecycle.members import stop

    node, was_up = stop(call.text("name"), call.arg("NODE"), note, at_once=call.switch("now"))
    print(f"Node {node.name} is stopped" if was_up else f"Node {node.name} was stopped already")
    return 0
