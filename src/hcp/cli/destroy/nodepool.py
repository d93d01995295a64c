"""`destroy nodepool`: delete one node pool."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE, TIMEOUT

COMMAND = Command(
    "destroy nodepool",
    "Delete a node pool",
    long="Deletes the NodePool; the operator drains and removes its machines.",
    examples=(("Delete and wait until the machines are gone", "{prog} destroy nodepool --name big --wait"),),
    flags=(
        Flag("name", "string", "", "node pool to delete", required=True),
        Flag("wait", "bool", False, "wait until it is gone"),
        TIMEOUT,
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.destroy.nodepool:run",
)


async def run(call: Call) -> int:
    from hcp.cli.engine.terminal import note
    from hcp.cli.shared.cluster import connect
    from hcp.cli.shared.waiting import wait_gone
    from hcp.errors import HcpError
    from hcp.kube.errors import ApiError, Unreachable
    from hcp.kube.resources import NODEPOOLS

    namespace, name = call.text("namespace"), call.text("name")
    async with connect(call) as client:
        try:
            found = await client.delete(NODEPOOLS, name, namespace, missing_ok=True)
        except Unreachable:
            raise
        except ApiError as error:
            raise HcpError(f"failed to delete NodePool {namespace}/{name}", cause=str(error), hint=error.hint) from None
        if found is None:
            note(f"NodePool {namespace}/{name} is not there")
            return 0
        note(f"deleting NodePool {namespace}/{name}")
        if call.switch("wait"):
            again = f"{call.prog} wait nodepool {name} -n {namespace} --for deleted goes on waiting"
            hint = f"{call.prog} get nodepools -n {namespace} shows it; {again}"
            seconds = call.seconds("timeout")
            await wait_gone(client, "node pool", namespace, name, seconds, hint=hint, again=again)
    return 0
