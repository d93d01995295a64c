"""`local node list`: the nodes of an embedded cluster."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag
from hcp.cli.local.common import NAME

COMMAND = Command(
    "local node list",
    "List the nodes of an embedded cluster",
    long="What runs of each node on this machine; `kubectl get nodes` says what the cluster thinks of them.",
    examples=(("With addresses", "{prog} local node list"),),
    flags=(NAME, Flag("output", "string", "table", "how to print", short="o", choices=("table", "json", "name"))),
    handler="hcp.cli.local.node.list:run",
)


def run(call: Call) -> int:
    from hcp.local.status.nodes import listed, render

    print(render(listed(call.text("name")), call.text("output")), end="")
    return 0
