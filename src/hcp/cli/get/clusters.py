"""`get clusters`: list hosted clusters, with the columns the API gives kubectl."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command
from hcp.cli.engine.common import ALL_NAMESPACES, CLUSTER_ACCESS, NAMESPACE, OUTPUT

COMMAND = Command(
    "get clusters",
    "List hosted clusters",
    examples=(("Everywhere", "{prog} get clusters -A"), ("One, in full", "{prog} get clusters demo -o yaml")),
    args=(Arg("NAME", "only this one", optional=True),),
    flags=(NAMESPACE, ALL_NAMESPACES, *CLUSTER_ACCESS, OUTPUT),
    handler="hcp.cli.get.clusters:run",
)


async def run(call: Call) -> int:
    from hcp.cli.engine.table import show_objects
    from hcp.cli.shared import health
    from hcp.cli.shared.cluster import connect
    from hcp.cli.shared.kubeconfigs import find_cluster
    from hcp.cli.shared.listing import known_kinds
    from hcp.kube.resources import HOSTEDCLUSTERS

    everywhere = call.switch("all-namespaces")
    async with connect(call) as client:
        if call.arg("NAME"):
            found = [await find_cluster(client, call.prog, call.text("namespace"), call.arg("NAME"))]
        else:
            found = await known_kinds(call, client.list(HOSTEDCLUSTERS, None if everywhere else call.text("namespace")))
    header = ["NAME", "VERSION", "KUBECONFIG", "PROGRESS", "AVAILABLE", "PROGRESSING", "MESSAGE"]
    rows = []
    for cluster in found:
        status = cluster.get("status") or {}
        available = health.condition(cluster, "Available") or {}
        progressing = health.condition(cluster, "Progressing") or {}
        entries = health.history(cluster)
        row = [
            cluster["metadata"]["name"],
            health.version(cluster),
            str((status.get("kubeconfig") or {}).get("name") or ""),
            str(entries[0].get("state") or "") if entries else "",
            str(available.get("status") or ""),
            str(progressing.get("status") or ""),
            str(available.get("message") or ""),
        ]
        if call.text("output") == "wide":
            row.append(str((cluster["spec"].get("release") or {}).get("image") or ""))
        rows.append([cluster["metadata"]["namespace"], *row] if everywhere else row)
    if call.text("output") == "wide":
        header.append("RELEASE")
    header = ["NAMESPACE", *header] if everywhere else header
    where = "anywhere" if everywhere else f"in namespace {call.text('namespace')}"
    show_objects(call.text("output"), found, header, rows, f"no hosted clusters {where}", single=bool(call.arg("NAME")))
    return 0
