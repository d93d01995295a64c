"""`payload list`: every component, its version, and whether it is in the cache."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag

COMMAND = Command(
    "payload list",
    "List what is built and what is missing",
    long="Reads the cache only; nothing is built. A damaged artifact is shown as such and will be made again.",
    examples=(("As JSON", "{prog} payload list -o json"),),
    flags=(Flag("output", "string", "table", "how to print", short="o", choices=("table", "json")),),
    handler="hcp.cli.payload.list:run",
)


def run(call: Call) -> None:
    import json

    from hcp.payload.listing import Row, rows, table

    found: list[Row] = rows()
    if call.text("output") == "json":
        print(json.dumps([row._asdict() for row in found], indent=2))
    else:
        print(table(found))
