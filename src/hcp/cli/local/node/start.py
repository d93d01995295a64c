"""`local node start`: start a node of an embedded cluster that was stopped."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command
from hcp.cli.local.common import NAME

COMMAND = Command(
    "local node start",
    "Start a node of an embedded cluster that was stopped",
    long=(
        "Brings a stopped or killed node back with what it had in its folder; its pods start again. "
        "`{prog} local up` starts all of them."
    ),
    examples=(("The second node", "sudo {prog} local node start 2"),),
    args=(Arg("NODE", "its name or its number"),),
    flags=(NAME,),
    handler="hcp.cli.local.node.start:run",
)


def run(call: Call) -> int:
    from hcp.cli.engine.terminal import end_like_an_interrupt, note
    from hcp.local.lifecycle.members import start

    end_like_an_interrupt()
    node, started = start(call.text("name"), call.arg("NODE"), note)
    print(f"Node {node.name} is up" if started else f"Node {node.name} was up already")
    return 0
