"""`local status`: what runs in an embedded cluster, and what is wrong with it."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag
from hcp.cli.local.common import NAME

COMMAND = Command(
    "local status",
    "Show what runs in an embedded cluster and what is wrong",
    examples=(("In a script", "{prog} local status -o json"),),
    long="Exit code 0 when everything is well, 1 when something is not.",
    flags=(NAME, Flag("output", "string", "table", "how to print", short="o", choices=("table", "json"))),
    handler="hcp.cli.local.status:run",
)


def run(call: Call) -> int:
    from hcp.local.status.printing import render
    from hcp.local.status.status import look

    status = look(call.text("name"))
    print(render(status, call.text("output")), end="")
    return 0 if status.well else 1
