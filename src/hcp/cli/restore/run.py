"""`restore`: choose a backup, check it, and walk through the steps of `hcp.backup.restoring`."""

from __future__ import annotations

from typing import Any

from hcp.api.paths import at
from hcp.backup import checking, naming, objects, restoring
from hcp.backup.content import Whole
from hcp.backup.naming import Name
from hcp.backup.objects import Kept
from hcp.backup.sealing import Lock
from hcp.backup.stores.base import Store
from hcp.cli.engine.command import Call
from hcp.cli.engine.terminal import note
from hcp.cli.restore import machines
from hcp.cli.restore.machines import AGAIN
from hcp.cli.shared.backup_store import lock_of, store_of
from hcp.cli.shared.cluster import connect
from hcp.cli.shared.progress import wait_until
from hcp.cli.shared.waiting import wait_cluster
from hcp.cli.shared.watched import Watched
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.resources import HOSTEDCLUSTERS, PODS

Object = dict[str, Any]
NOT_FOUND = 4


async def run(call: Call) -> int:
    namespace, called = call.text("namespace"), call.arg("NAME")
    lock = lock_of(call)
    async with store_of(call, "from") as store, connect(call) as client:
        name = await _chosen(call, store, namespace, called)
        note(f"reading {name} in {store.place}")
        whole, kept = await checking.whole(store, name, lock)
        _allowed(call, kept)
        told = whole.header.told
        note(f"made {told.get('created')} by hcp {told.get('hcp')}; {whole.snapshot.size / 1024**2:.1f} MiB of etcd")
        await machines.first_look(call, client, kept)
        await restoring.begin(client, kept, whole, str(name), note)
        await _send(call, client, store, lock, name, kept, whole)
        await wait_cluster(
            client,
            call.prog,
            namespace,
            called,
            call.seconds("timeout"),
            with_nodes=False,
            again=AGAIN,
        )
        await machines.bring_back(call, client, kept)
        await _tell(call, client, kept)
    return 0


async def _chosen(call: Call, store: Store, namespace: str, called: str) -> Name:
    if call.text("backup"):
        name = naming.asked(call.text("backup"))
        if not name.of(namespace, called):
            raise HcpError(
                f"{name} is a backup of {name.namespace}/{name.cluster}",
                cause=f"{namespace}/{called} was asked for",
                hint="a cluster comes back under its own name and namespace: its certificates and data carry them",
            )
        return name
    found = naming.newest((entry.name for entry in await store.entries()), namespace, called)
    if found is None:
        raise HcpError(
            f"there is no backup of hosted cluster {namespace}/{called} in {store.place}",
            hint=f"{call.prog} backup list --store {store.place} shows what is there",
            exit_code=NOT_FOUND,
        )
    return found


def _allowed(call: Call, kept: Kept) -> None:
    """Whoever restores often may do everything; whoever wrote the backup may have meant to use that."""
    asked = [one for one in objects.privileged(kept) if one not in call.items("allow-privileges")]
    if asked:
        raise HcpError(
            "the backup asks for what needs a right of its own",
            cause=", ".join(asked),
            hint=f"if that is meant: --allow-privileges {','.join(asked)}",
        )


async def _send(call: Call, client: Client, store: Store, lock: Lock, name: Name, kept: Kept, whole: Whole) -> None:
    """The snapshot, to every member that waits for it."""
    sent: set[str] = set()
    for member in (f"etcd-{index}" for index in range(kept.members)):
        pod = Watched(PODS, kept.hosted, member)
        cluster = Watched(HOSTEDCLUSTERS, kept.namespace, kept.name)

        def judge(pod: Watched = pod, cluster: Watched = cluster, member: str = member) -> tuple[bool, str]:
            if cluster.one() is None:
                raise HcpError(f"hosted cluster {kept.namespace}/{kept.name} is gone")
            why = restoring.held_up(pod.one())
            text = f"waiting until pod {member} takes its snapshot" + (f" ({why})" if why else "")
            return restoring.waits(pod.one()) is not None, text

        await wait_until(
            client,
            [pod, cluster],
            judge,
            late=f"pod {kept.hosted}/{member} does not wait for its snapshot",
            seconds=call.seconds("timeout"),
            hint=f"{call.prog} status {kept.name} -n {kept.namespace} shows why; {AGAIN}",
            again=AGAIN,
        )
        if restoring.waits(pod.one()):
            await restoring.send(client, kept, member, whole, checking.snapshot(store, name, lock))
            sent.add(member)
    if sent:
        note(f"the snapshot was sent to {', '.join(sorted(sent))}")


async def _tell(call: Call, client: Client, kept: Kept) -> None:
    live = await client.get(HOSTEDCLUSTERS, kept.name, kept.namespace)
    endpoint = at(live, "status.controlPlaneEndpoint") or {}
    where = f"{kept.namespace}/{kept.name}"
    print(f"Hosted cluster {where} is back; its API answers at {endpoint.get('host')}:{endpoint.get('port')}")
    note(
        "Kubeconfigs of before are valid as long as they lead to that address; "
        f"{call.prog} create kubeconfig --name {kept.name} -n {kept.namespace} gives one that does"
    )
    if at(kept.cluster, "spec.pausedUntil"):
        note("It was paused when the backup was made and is not any more")
