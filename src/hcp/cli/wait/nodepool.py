"""`wait nodepool`: until a node pool has its nodes, or is gone."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE, TIMEOUT

COMMAND = Command(
    "wait nodepool",
    "Wait until a node pool has its nodes or is gone",
    long="Ready means: as many nodes as asked for are ready, and no update is under way. Exit code 3 when the time is "
    "up, 4 when there is no such pool.",
    examples=(("Until all nodes are there", "{prog} wait nodepool big --timeout 10m"),),
    args=(Arg("NAME", "node pool"),),
    flags=(
        Flag("for", "string", "ready", "what to wait for", choices=("ready", "deleted")),
        TIMEOUT,
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.wait.nodepool:run",
)


async def run(call: Call) -> int:
    from hcp.cli.shared.cluster import connect
    from hcp.cli.shared.pools import find_pool
    from hcp.cli.shared.waiting import wait_gone, wait_pool

    namespace, name, seconds = call.text("namespace"), call.arg("NAME"), call.seconds("timeout")
    async with connect(call) as client:
        if call.text("for") == "deleted":
            again = f"{call.prog} wait nodepool {name} -n {namespace} --for deleted goes on waiting"
            hint = f"{call.prog} get nodepools -n {namespace} shows it; {again}"
            await wait_gone(client, "node pool", namespace, name, seconds, hint=hint, again=again)
            return 0
        await find_pool(client, call.prog, namespace, name)
        await wait_pool(client, call.prog, namespace, name, seconds)
    return 0
