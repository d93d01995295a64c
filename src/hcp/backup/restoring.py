"""Bringing a hosted cluster back, step by step; every step may be done twice.

1. The Secrets and ConfigMaps beside the HostedCluster.
2. The HostedCluster, paused: the operator takes notice and makes nothing.
3. Its hosted namespace, and in it the authorities and keys. Whoever comes later finds them and makes none.
4. The pause ends. etcd's pods wait for the snapshot, with whose sum the HostedCluster is marked.
5. The snapshot is sent to each of them.
6. NodePools, when the control plane is up, and before them their machines, where those run on (`adopting.py`).

Objects that exist are never changed: they are the same, or the restore stops.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from hcp.api import names
from hcp.api.paths import annotations_of
from hcp.backup.content import Whole
from hcp.backup.objects import Kept
from hcp.controlplane.etcd_restore import CONTAINER, RECEIVER
from hcp.errors import HcpError
from hcp.kube import Client, streams
from hcp.kube.errors import AlreadyExists
from hcp.kube.resources import HOSTEDCLUSTERS, NAMESPACES, NODEPOOLS, resource_for
from hcp.runtime import ownership

Object = dict[str, Any]
Say = Callable[[str], None]
PAUSED = "true"


def wanted_cluster(kept: Kept, found: Whole, backup: str) -> Object:
    """The HostedCluster as it is created: marked with what it comes from, and paused."""
    meta = kept.cluster["metadata"]
    notes = {
        **annotations_of(kept.cluster),
        names.ANNOTATION_RESTORED_FROM_BACKUP: backup,
        names.ANNOTATION_RESTORE_SNAPSHOT: found.snapshot.sha256,
    }
    spec = json.loads(json.dumps(kept.cluster["spec"]))
    # The data comes from the backup; an older address to start from must not be asked again.
    spec.get("etcd", {}).get("managed", {}).get("storage", {}).pop("restoreSnapshotURL", None)
    return {**kept.cluster, "metadata": {**meta, "annotations": notes}, "spec": {**spec, "pausedUntil": PAUSED}}


async def begin(client: Client, kept: Kept, found: Whole, backup: str, say: Say) -> Object:
    """Steps 1 to 4; gives the HostedCluster. Goes on where an earlier run stopped."""
    live = await client.get_or_none(HOSTEDCLUSTERS, kept.name, kept.namespace)
    if live is not None:
        _ours(live, found)
    await _namespace(client, kept.namespace)
    for one in kept.given:
        await _keep(client, one)
    if live is None:
        live = await client.create(wanted_cluster(kept, found, backup), manager=names.CLI_FIELD_MANAGER)
        say(f"HostedCluster {kept.namespace}/{kept.name} is there, paused")
    if live["spec"].get("pausedUntil") != PAUSED:
        return live
    await _hosted_namespace(client, kept, live)
    for one in kept.keys:
        await _keep(client, one)
    say(f"{len(kept.keys)} authorities and keys are in namespace {kept.hosted}")
    body = {"spec": {"pausedUntil": None}}
    return await client.patch(HOSTEDCLUSTERS, kept.name, kept.namespace, body, manager=names.CLI_FIELD_MANAGER)


def _ours(live: Object, found: Whole) -> None:
    """A cluster that runs is nothing to restore over; one that an earlier run has begun is."""
    meta = live["metadata"]
    where = f"{meta['namespace']}/{meta['name']}"
    if meta.get("deletionTimestamp"):
        raise HcpError(f"hosted cluster {where} is still being deleted", hint="try again when it is gone")
    if annotations_of(live).get(names.ANNOTATION_RESTORE_SNAPSHOT) != found.snapshot.sha256:
        raise HcpError(
            f"hosted cluster {where} exists",
            cause="nothing is restored over a cluster",
            hint="destroy it first, or restore into another management cluster",
        )


async def _namespace(client: Client, name: str) -> None:
    if await client.get_or_none(NAMESPACES, name) is None:
        try:
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        except AlreadyExists:
            return


async def _hosted_namespace(client: Client, kept: Kept, live: Object) -> None:
    """Marked with the UID of the HostedCluster: by that the operator knows it as the cluster's."""
    claim = await ownership.look(client, live)
    if claim.foreign:
        raise HcpError(f"namespace {kept.hosted} cannot be used", cause=claim.problem)
    if claim.namespace is None:
        notes = {
            names.ANNOTATION_CLUSTER: f"{kept.namespace}/{kept.name}",
            names.ANNOTATION_CLUSTER_UID: live["metadata"]["uid"],
        }
        meta = {"name": kept.hosted, "annotations": notes, "labels": {names.LABEL_CONTROL_PLANE_NAMESPACE: "true"}}
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})


async def _keep(client: Client, wanted: Object) -> None:
    """Create it; what is there must hold the same."""
    try:
        await client.create(wanted, manager=names.CLI_FIELD_MANAGER)
        return
    except AlreadyExists:
        pass
    meta = wanted["metadata"]
    live = await client.get(resource_for(wanted), meta["name"], meta["namespace"])
    if (live.get("data") or {}) != (wanted.get("data") or {}):
        raise HcpError(
            f"{wanted['kind']} {meta['namespace']}/{meta['name']} exists and holds something else",
            cause="nothing that exists is changed by a restore",
            hint="look what it is; delete it if nobody needs it, and run the restore again",
        )


async def missing_pools(client: Client, kept: Kept) -> list[str]:
    """Those that step 6 would make."""
    there = {one["metadata"]["name"] for one in await client.list(NODEPOOLS, kept.namespace)}
    return sorted({str(one["metadata"]["name"]) for one in kept.pools} - there)


async def pools(client: Client, kept: Kept) -> list[str]:
    """Step 6; the names of those that were made now."""
    made = []
    for one in kept.pools:
        try:
            await client.create(one, manager=names.CLI_FIELD_MANAGER)
            made.append(str(one["metadata"]["name"]))
        except AlreadyExists:
            continue
    return made


def waits(pod: Object | None) -> bool | None:
    """Whether a pod of etcd waits for its snapshot: True, False when it has it, None when it is not that far."""
    status = (pod or {}).get("status") or {}
    for one in status.get("initContainerStatuses") or []:
        if one.get("name") == CONTAINER:
            state = one.get("state") or {}
            if (state.get("terminated") or {}).get("exitCode") == 0:
                return False
            return True if "running" in state else None
    return None


def held_up(pod: Object | None) -> str:
    """What a pod says of why it does not get that far."""
    status = (pod or {}).get("status") or {}
    for one in status.get("initContainerStatuses") or []:
        state = one.get("state") or {}
        told = state.get("waiting") or state.get("terminated") or {}
        if told.get("reason") not in (None, "PodInitializing", "Completed"):
            return ": ".join(filter(None, (str(told["reason"]), str(told.get("message") or ""))))[:300]
    unplaced = [one for one in status.get("conditions") or [] if one.get("type") == "PodScheduled"]
    return next((str(one.get("message") or "") for one in unplaced if one.get("status") == "False"), "")


async def send(client: Client, kept: Kept, pod: str, found: Whole, pieces: AsyncIterator[bytes]) -> None:
    """Step 5, for one member."""
    command = ("python3", "-m", RECEIVER, found.snapshot.sha256)
    await streams.run(client, kept.hosted, pod, CONTAINER, command, pieces)
