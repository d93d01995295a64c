"""Taking a backup: objects, a snapshot of etcd, and a look that nothing changed under it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from hcp import __version__
from hcp.api.paths import at
from hcp.backup import collecting, naming, retention
from hcp.backup.content import Snapshot, Writer
from hcp.backup.naming import Name
from hcp.backup.objects import HYPERSHIFT
from hcp.backup.sealing import Lock
from hcp.backup.stores.base import Store
from hcp.errors import HcpError
from hcp.etcd.client import Etcd
from hcp.kube import Client

Object = dict[str, Any]
Reach = Callable[[Client, str], AbstractAsyncContextManager[Etcd]]
Say = Callable[[str], None]
STEP = 64 * 1024**2


async def create(
    client: Client,
    store: Store,
    lock: Lock,
    cluster: Object,
    hosted: str,
    reach: Reach,
    say: Say,
    now: dt.datetime,
) -> Name:
    """One backup of one cluster; its name. What goes wrong leaves the store as it was."""
    meta = cluster["metadata"]
    namespace, called = meta["namespace"], meta["name"]
    objects = await collecting.collect(client, namespace, called)
    name = naming.new(namespace, called, now)
    say(f"{len(objects)} objects of hosted cluster {namespace}/{called} go with it{_machines_told(cluster, objects)}")
    async with reach(client, hosted) as etcd, store.writing(name) as sink:
        writer = Writer(lock, _told(cluster, name), sink.put)
        await writer.objects(objects)
        before = await etcd.status()
        seen = await etcd.fingerprint(before.revision)
        step = STEP
        async for piece in etcd.snapshot():
            await writer.snapshot(piece)
            if writer.size >= step:
                say(f"{writer.size // 1024**2} MiB of about {before.size // 1024**2} MiB of etcd")
                step += STEP
        after = await etcd.status()
        again = await collecting.collect(client, namespace, called)
        if collecting.keys_of(again) != collecting.keys_of(objects):
            raise HcpError(
                "the keys of the cluster changed while its snapshot was taken",
                cause="they are being rotated, and might not fit the snapshot",
                hint="try again when condition CertificatesUpToDate is True",
            )
        await writer.end(
            Snapshot(
                size=writer.size,
                sha256=writer.sha256,
                revision=seen.revision,
                newest=after.revision,
                keys=seen.keys,
                hash=seen.hash,
                compacted=seen.compacted,
                members=3 if at(cluster, "spec.controllerAvailabilityPolicy") == "HighlyAvailable" else 1,
            )
        )
    say(f"etcd at revision {seen.revision}, {seen.keys} keys, {writer.size / 1024**2:.1f} MiB")
    return name


async def let_go(store: Store, name: Name, keep: int, say: Say) -> list[Name]:
    """Delete what is beyond the number to keep; only ever after a new one is there."""
    found = [entry.name for entry in await store.entries()]
    gone = [one for one in retention.surplus(found, name.namespace, name.cluster, keep) if one != name]
    for one in gone:
        await store.remove(one)
        say(f"{one} is beyond --keep {keep} and was deleted")
    return gone


def _machines_told(cluster: Object, found: list[Object]) -> str:
    """On external infra it counts whether they are in it; a pool of no machines has none."""
    if not at(cluster, "spec.platform.kubevirt.credentials"):
        return ""
    count = sum(one["kind"] == "Machine" for one in found)
    return f", {count} machines on external infra among them"


def _told(cluster: Object, name: Name) -> Object:
    """What can be read without a key: nothing that is not in the list of clusters too."""
    history = at(cluster, "status.version.history") or [{}]
    return {
        "apiVersion": HYPERSHIFT,
        "cluster": f"{name.namespace}/{name.cluster}",
        "created": name.told_time,
        "hcp": __version__,
        "version": str(history[0].get("version") or ""),
    }
