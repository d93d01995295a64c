"""`local node remove`: drain a node of an embedded cluster and take it away."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag
from hcp.cli.local.common import NAME

COMMAND = Command(
    "local node remove",
    "Drain a node of an embedded cluster and take it away",
    long=(
        "Its pods are evicted, so that budgets are kept; then the node leaves the cluster and its folder is removed. "
        "Volumes are the cluster's and stay."
    ),
    examples=(("The third node", "sudo {prog} local node remove 3"),),
    args=(Arg("NODE", "its name or its number"),),
    flags=(
        NAME,
        Flag("timeout", "duration", 300_000_000_000, "how long evictions may take"),
        Flag("force", "bool", False, "take it away without draining it"),
    ),
    handler="hcp.cli.local.node.remove:run",
)


def run(call: Call) -> int:
    from hcp.cli.engine.terminal import end_like_an_interrupt, note
    from hcp.local.lifecycle.members import remove

    end_like_an_interrupt()
    name = call.text("name")
    node = remove(name, call.arg("NODE"), note, patience=call.seconds("timeout"), force=call.switch("force"))
    print(f"Node {node.name} is gone")
    return 0
