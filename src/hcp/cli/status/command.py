"""`status`: one hosted cluster on one screen."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE

COMMAND = Command(
    "status",
    "Show one hosted cluster on one screen, and what it waits for",
    long="Versions, addresses, every condition that is not as it should be with its reason, control plane pods, node "
    "pools, machines, and what is being waited for.",
    examples=(("How is demo?", "{prog} status demo"), ("For a script", "{prog} status demo -o json")),
    args=(Arg("NAME", "hosted cluster"),),
    flags=(
        Flag(
            "output", "string", "table", "how to print", short="o", choices=("table", "yaml", "json"), group="General"
        ),
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.status.run:run",
)
