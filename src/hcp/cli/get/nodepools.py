"""`get nodepools`: list node pools."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag
from hcp.cli.engine.common import ALL_NAMESPACES, CLUSTER_ACCESS, NAMESPACE, OUTPUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    "get nodepools",
    "List node pools",
    examples=(("Of one hosted cluster", "{prog} get nodepools --cluster-name demo"),),
    args=(Arg("NAME", "only this one", optional=True),),
    flags=(
        Flag("cluster-name", "string", "", "only the pools of this hosted cluster"),
        NAMESPACE,
        ALL_NAMESPACES,
        *CLUSTER_ACCESS,
        OUTPUT,
    ),
    handler="hcp.cli.get.nodepools:run",
)


async def run(call: Call) -> int:
    from hcp.cli.engine.table import show_objects
    from hcp.cli.shared import health
    from hcp.cli.shared.cluster import connect
    from hcp.cli.shared.listing import known_kinds
    from hcp.errors import HcpError
    from hcp.kube.resources import NODEPOOLS

    everywhere = call.switch("all-namespaces")
    async with connect(call) as client:
        found = await known_kinds(call, client.list(NODEPOOLS, None if everywhere else call.text("namespace")))
    cluster, name = call.text("cluster-name"), call.arg("NAME")
    found = [pool for pool in found if not cluster or pool["spec"].get("clusterName") == cluster]
    found = [pool for pool in found if not name or pool["metadata"]["name"] == name]
    if name and not found:
        raise HcpError(
            f"there is no node pool {call.text('namespace')}/{name}",
            hint=f"{call.prog} get nodepools -A lists all",
            exit_code=4,
        )
    rows = []
    for pool in found:
        row = [
            pool["metadata"]["name"],
            str(pool["spec"].get("clusterName") or ""),
            health.desired(pool),
            str(health.nodes(pool)[0]),
            str((pool.get("status") or {}).get("version") or ""),
            "True" if health.is_true(pool, "Ready") else "False",
            _message(pool),
        ]
        rows.append([pool["metadata"]["namespace"], *row] if everywhere else row)
    header = ["NAME", "CLUSTER", "DESIRED NODES", "CURRENT NODES", "VERSION", "READY", "MESSAGE"]
    header = ["NAMESPACE", *header] if everywhere else header
    where = "anywhere" if everywhere else f"in namespace {call.text('namespace')}"
    show_objects(call.text("output"), found, header, rows, f"no node pools {where}", single=bool(call.arg("NAME")))
    return 0


def _message(pool: dict[str, Any]) -> str:
    """One line: what is missing, or else what is not as it should be."""
    from hcp.cli.shared import health, machine_messages

    bad = health.hindrances(pool) or health.problems(pool)
    if not bad:
        return ""
    return machine_messages.cut(health.explain(bad[0])) if health.pool_ready(pool) else machine_messages.wait_of(pool)
