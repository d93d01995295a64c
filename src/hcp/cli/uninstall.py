"""``hcp uninstall``: take the operator away again."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS

COMMAND = Command(
    "uninstall",
    "Remove the operator from a management cluster",
    long="Removes what install made. While hosted clusters exist it refuses: without the operator nobody looks\n"
    "after them and nobody can delete them cleanly.",
    examples=(("Remove everything", "{prog} uninstall"),),
    flags=(
        Flag("force", "bool", False, "remove the operator although hosted clusters exist; they stay, unattended"),
        Flag("keep-crds", "bool", False, "leave the definitions on the cluster"),
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.uninstall:run",
)


async def run(call: Call) -> int | None:
    from hcp.cli.shared.cluster import connect
    from hcp.install.remove import remove

    async with connect(call) as client:
        await remove(client, force=call.switch("force"), keep_crds=call.switch("keep-crds"), say=print)
    return 0
