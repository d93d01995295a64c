"""`local list`: the embedded clusters of this machine."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag

COMMAND = Command(
    "local list",
    "List embedded clusters",
    examples=(("With state and address", "{prog} local list"),),
    flags=(Flag("output", "string", "table", "how to print", short="o", choices=("table", "json", "name")),),
    handler="hcp.cli.local.list:run",
)


def run(call: Call) -> int:
    from hcp.local.status.listing import clusters, render

    print(render(clusters(), call.text("output")), end="")
    return 0
