"""`wait cluster`: until a hosted cluster is ready, or gone."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE, TIMEOUT

COMMAND = Command(
    "wait cluster",
    "Wait until a hosted cluster is ready or gone",
    long="Ready means: the control plane is available, its release is rolled out, and every node pool has its nodes. "
    "Exit code 3 when the time is up, 4 when there is no such cluster.",
    examples=(
        ("Until all nodes are there", "{prog} wait cluster demo --timeout 20m"),
        ("Until its API answers", "{prog} wait cluster demo --control-plane"),
        ("Until it is gone", "{prog} wait cluster demo --for deleted"),
    ),
    args=(Arg("NAME", "hosted cluster"),),
    flags=(
        Flag("for", "string", "ready", "what to wait for", choices=("ready", "deleted")),
        Flag("control-plane", "bool", False, "do not wait for nodes"),
        TIMEOUT,
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.wait.cluster:run",
)


async def run(call: Call) -> int:
    from hcp.cli.shared.cluster import connect
    from hcp.cli.shared.kubeconfigs import find_cluster
    from hcp.cli.shared.waiting import wait_cluster, wait_gone

    namespace, name, seconds = call.text("namespace"), call.arg("NAME"), call.seconds("timeout")
    async with connect(call) as client:
        if call.text("for") == "deleted":
            again = f"{call.prog} wait cluster {name} -n {namespace} --for deleted goes on waiting"
            hint = f"{call.prog} status {name} -n {namespace} shows what holds it; {again}"
            await wait_gone(client, "hosted cluster", namespace, name, seconds, hint=hint, again=again)
            return 0
        await find_cluster(client, call.prog, namespace, name)
        await wait_cluster(client, call.prog, namespace, name, seconds, with_nodes=not call.switch("control-plane"))
    return 0
