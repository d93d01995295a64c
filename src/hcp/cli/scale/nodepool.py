"""`scale nodepool`: change how many nodes a pool has."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE, TIMEOUT, WAIT

COMMAND = Command(
    "scale nodepool",
    "Change how many nodes a node pool has",
    long="The operator makes or drains machines until the pool has the number asked for.",
    examples=(("Four nodes, wait for them", "{prog} scale nodepool demo --replicas 4 --wait"),),
    args=(Arg("NAME", "node pool"),),
    flags=(
        Flag("replicas", "int32", None, "number of nodes", required=True),
        WAIT,
        TIMEOUT,
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.scale.nodepool:run",
)


async def run(call: Call) -> int:
    from hcp.api import names
    from hcp.cli.engine import grammar
    from hcp.cli.engine.terminal import note
    from hcp.cli.shared import health
    from hcp.cli.shared.cluster import connect
    from hcp.cli.shared.pools import find_pool
    from hcp.cli.shared.waiting import wait_pool
    from hcp.errors import HcpError
    from hcp.kube.resources import NODEPOOLS

    namespace, name, replicas = call.text("namespace"), call.arg("NAME"), call.number("replicas")
    if replicas < 0:
        raise grammar.refuse("replicas", str(replicas), "the number of nodes cannot be negative", "a number from 0")
    async with connect(call) as client:
        pool = await find_pool(client, call.prog, namespace, name)
        scaling = pool["spec"].get("autoScaling")
        if scaling:
            raise HcpError(
                f"node pool {namespace}/{name} has autoScaling set",
                cause=f"from {scaling.get('min')} to {scaling.get('max')} nodes",
                hint="remove spec.autoScaling of the NodePool to set the number by hand",
            )
        before = health.nodes(pool)[1]
        body = {"spec": {"replicas": replicas}}
        await client.patch(NODEPOOLS, name, namespace, body, manager=names.CLI_FIELD_MANAGER)
        print(f"NodePool {name} scaled from {before} to {replicas}", flush=True)
        if (pool["spec"].get("platform") or {}).get("type") == names.PLATFORM_NONE:
            note("its machines are your own: start or end them, nobody else does")
        if call.switch("wait"):
            await wait_pool(client, call.prog, namespace, name, call.seconds("timeout"))
    return 0
