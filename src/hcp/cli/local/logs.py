"""`local logs`: what a process of an embedded cluster said."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag
from hcp.cli.local.common import NAME

COMMAND = Command(
    "local logs",
    "Print the log of a process of an embedded cluster",
    long="Without COMPONENT it names the ones there are. What runs in pods is read with kubectl logs.",
    examples=(("Follow the kubelet", "{prog} local logs kubelet -f"),),
    args=(Arg("COMPONENT", "process whose log to print", optional=True),),
    flags=(
        NAME,
        Flag("node", "string", "", "a node after the first, by its name or number"),
        Flag("follow", "bool", False, "keep printing what is added", short="f"),
        Flag("tail", "int", 200, "how many lines to begin with; -1 for all"),
    ),
    handler="hcp.cli.local.logs:run",
)


def run(call: Call) -> int:
    from hcp.local.status.logs import show

    show(
        call.text("name"),
        call.arg("COMPONENT"),
        call.text("node"),
        follow=call.switch("follow"),
        tail=call.number("tail"),
    )
    return 0
