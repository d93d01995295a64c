"""`restore`: node pools. Machines on external infra that outlived their management cluster are taken over."""

from __future__ import annotations

from typing import Any

from hcp.api.paths import at
from hcp.backup import adopting, machines, restoring, still_there
from hcp.backup.adopting import Plan
from hcp.backup.objects import Kept
from hcp.cli.engine.command import Call
from hcp.cli.engine.terminal import note, warn
from hcp.cli.shared.kubeconfigs import from_secret
from hcp.cli.shared.progress import wait_until
from hcp.cli.shared.watched import Watched
from hcp.errors import HcpError
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube.resources import HOSTEDCLUSTERS, LEASES, MACHINES, MACHINESETS, NODES

Object = dict[str, Any]
AGAIN = "run the same command again, it goes on where it stopped"
_LEASES = "kube-node-lease"


async def first_look(call: Call, client: Client, kept: Kept) -> None:
    """What would go wrong later is told before anything is made."""
    if machines.place(kept.cluster, kept.pools, kept.hosted) is None:
        return
    if await client.get_or_none(HOSTEDCLUSTERS, kept.name, kept.namespace) is None:
        await _alone(call, kept)
    plan = await look(call, client, kept)
    if plan.names:
        note(f"{len(plan.names)} machines run on external infra and are taken over: {', '.join(sorted(plan.names))}")


async def bring_back(call: Call, client: Client, kept: Kept) -> None:
    """Node pools, with their machines where those are still there; nodes whose machines are lost go."""
    if call.switch("no-node-pools") or not kept.pools:
        return
    virtual = at(kept.cluster, "spec.platform.type") == "KubeVirt"
    plan = await take_over(call, client, kept) if virtual else Plan()
    if not await restoring.missing_pools(client, kept):
        return
    try:
        gone = await former_nodes(call, client, kept) if virtual else []
        if gone:
            note(f"former nodes were taken out of the cluster: {', '.join(gone)}")
    except HcpError as error:
        warn(f"former nodes could not be taken out of the cluster, do it with kubectl delete node: {error}")
    made = await restoring.pools(client, kept)
    taken = {one.pool.partition("/")[2] for one in plan.pools}
    for word, some in (("with their machines", taken & set(made)), ("made anew", set(made) - taken)):
        if some:
            note(f"node pools {word}: {', '.join(sorted(some))}")


async def look(call: Call, client: Client, kept: Kept) -> Plan:
    """What is taken over; nothing, where that is asked for."""
    if call.switch("no-node-pools") or call.switch("new-machines"):
        return Plan()
    try:
        return await adopting.look(client, kept)
    except HcpError as error:
        raise HcpError(
            "the infra cluster cannot be asked for the machines of this cluster",
            cause=str(error),
            hint="run the restore where it can be reached, or give --new-machines to make node pools anew",
        ) from error


async def take_over(call: Call, client: Client, kept: Kept) -> Plan:
    """Until Cluster API knows all machines, and their nodes have come to the API where it is now."""
    plan = await look(call, client, kept)
    for one in plan.pools:
        await adopting.take_over(client, kept, one)
        note(f"node pool {one.pool}: {len(one.machines)} machines are there again: {', '.join(one.names)}")
    if plan.pools:
        note("keep the former management cluster off the infra cluster: it takes these machines for its own")
        await _known(call, client, kept, plan)
        live = await client.get(HOSTEDCLUSTERS, kept.name, kept.namespace)
        if adopting.moved(kept, live):
            warn(
                "the API is not where it was, and running nodes cannot be told: their machines are replaced, one after "
                "another, and run on until then. A name of its own for the API spares that the next time"
            )
        elif not call.switch("force"):
            await _heard(call, client, kept, plan, live)
    if plan.unknown:
        warn(
            f"machines on the infra cluster that the backup does not know stay there: {', '.join(plan.unknown)}; "
            "delete their VirtualMachines if nobody needs them"
        )
    return plan


async def former_nodes(call: Call, client: Client, kept: Kept) -> list[str]:
    """Take nodes out of the cluster that no machine stands behind: they, and pods on them, would stay for ever."""
    live = await client.get(HOSTEDCLUSTERS, kept.name, kept.namespace)
    here = {machines.vm_of(one) for one in await client.list(MACHINES, kept.hosted)}
    gone = []
    async with Client(untrusted_kubeconfig.load(await from_secret(client, call.prog, live))) as guest:
        for node in await guest.list(NODES):
            name = str(node["metadata"]["name"])
            if name not in here:
                await guest.delete(NODES, name, missing_ok=True)
                gone.append(name)
    return gone


async def _alone(call: Call, kept: Kept) -> None:
    """Two control planes over the same machines would work against each other."""
    host, port = kept.endpoint
    if call.switch("force") or not await still_there.answers(kept):
        return
    raise HcpError(
        f"hosted cluster {kept.namespace}/{kept.name} still runs somewhere: its API answers at {host}:{port}",
        cause="its machines on external infra would get two masters, and each would replace what the other one does",
        hint="switch that management cluster off, or cut it off from the infra cluster; do not destroy the cluster "
        "there, its machines would go with it. --force goes on nevertheless",
    )


async def _known(call: Call, client: Client, kept: Kept, plan: Plan) -> None:
    seen = {resource: Watched(resource, kept.hosted) for resource in (MACHINESETS, MACHINES)}

    def judge() -> tuple[bool, str]:
        now = {resource: one.objects for resource, one in seen.items()}
        left = [name for one in plan.pools for name in adopting.missed(one, now)]
        return not left, f"waiting until Cluster API knows {', '.join(left)}" if left else "Cluster API knows them"

    await wait_until(
        client,
        list(seen.values()),
        judge,
        late="Cluster API does not know all machines",
        seconds=call.seconds("timeout"),
        hint=f"its two managers run in the operator's namespace; {AGAIN}",
        again=AGAIN,
    )


async def _heard(call: Call, client: Client, kept: Kept, plan: Plan, live: Object) -> None:
    """Before anything watches over their health: a node that is not heard of would be repaired, by a restart."""
    leases = Watched(LEASES, _LEASES)
    first: dict[str, str] = {}
    host, on = kept.endpoint[0], f"{AGAIN}; with --force it does not wait for nodes"

    def judge() -> tuple[bool, str]:
        now = {name: str(one["metadata"]["resourceVersion"]) for name, one in leases.objects.items()}
        for name in plan.names & set(now):
            first.setdefault(name, now[name])
        silent = sorted(name for name, version in first.items() if now.get(name) == version)
        if not silent:
            return True, f"{len(first)} nodes report"
        return False, f"waiting until nodes report: {', '.join(silent)}; {host} has to lead to this management cluster"

    async with Client(untrusted_kubeconfig.load(await from_secret(client, call.prog, live))) as guest:
        await wait_until(
            guest,
            [leases],
            judge,
            late="not all nodes have reported",
            seconds=call.seconds("timeout"),
            hint=f"point the DNS record of {host} at this management cluster; {on}",
            again=on,
        )
