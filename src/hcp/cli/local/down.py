"""`local down`: stop an embedded cluster and leave nothing of it on the machine."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag
from hcp.cli.local.common import NAME

COMMAND = Command(
    "local down",
    "Stop an embedded management cluster",
    long=(
        "Ends every process of the cluster and removes its namespaces, mounts, links, rules, cgroups and addresses. "
        "Its data stays, and `{prog} local up` brings it back; --purge removes the data too."
    ),
    examples=(("Stop it and forget it", "sudo {prog} local down --purge"),),
    flags=(NAME, Flag("purge", "bool", False, "also remove the cluster's data")),
    handler="hcp.cli.local.down:run",
)


def run(call: Call) -> int:
    from hcp.cli.engine.terminal import note
    from hcp.local.lifecycle.down import down

    name = call.text("name")
    down(name, purge=call.switch("purge"), say=note)
    print(f"Cluster '{name}' is gone, with its data" if call.switch("purge") else f"Cluster '{name}' is down")
    return 0
