"""`create cluster` without --render: send the objects, so that a run that failed half-way can be repeated."""

from __future__ import annotations

import asyncio
from binascii import a2b_base64
from typing import Any

from hcp.api import names
from hcp.cli.create.cluster.checks import check, etcd_infra_id
from hcp.cli.create.cluster.objects import objects
from hcp.cli.create.nodepool.objects import node_pool
from hcp.cli.create.options import ClusterOptions
from hcp.cli.engine.command import Call
from hcp.cli.engine.terminal import note
from hcp.cli.shared.cluster import connect
from hcp.cli.shared.progress import TIMED_OUT
from hcp.cli.shared.release_default import default_release, from_stream
from hcp.cli.shared.waiting import wait_cluster
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.errors import ApiError
from hcp.kube.resources import CONFIGMAPS, NAMESPACES, SECRETS

Object = dict[str, Any]


async def create(call: Call, options: ClusterOptions) -> int:
    """Check, send, wait. `--timeout` limits all of it together."""
    limit = call.seconds("timeout")
    started = asyncio.get_running_loop().time()
    async with connect(call) as client:
        try:
            async with asyncio.timeout(limit or None):
                await _send(client, call, options)
        except TimeoutError:
            raise HcpError(
                f"the objects of hosted cluster {options.namespace}/{options.name} were not all sent after {limit:g} s",
                hint="run the same command again: it goes on where it stopped",
                exit_code=TIMED_OUT,
            ) from None
        if call.switch("wait"):
            left = max(limit - (asyncio.get_running_loop().time() - started), 0.001) if limit else 0
            await wait_cluster(client, call.prog, options.namespace, options.name, left, with_nodes=True)
            note(f"hosted cluster {options.namespace}/{options.name} is ready")
    _next_steps(call, options)
    return 0


async def _send(client: Client, call: Call, options: ClusterOptions) -> None:
    existing = await check(client, call, options)
    if existing is not None:
        await _finish(client, options, existing)
        return
    if not options.release_image:
        stream = call.text("release-stream")
        options.release_image = await from_stream(client, stream) if stream else await default_release(client)
        if options.workers is not None:
            options.workers.release_image = options.release_image
    earlier = "" if call.changed("infra-id") else await etcd_infra_id(client, options)
    if earlier:
        # Its Secrets stay part of this cluster: one of them may already encrypt data.
        note(f"going on with the unfinished cluster of infrastructure id {earlier}")
        options.infra_id = earlier
    wanted = [labelled(obj, options.infra_id) for obj in objects(options)]
    for obj in wanted:
        if not await _keep(client, obj, options):
            await _apply(client, obj)
        if obj["kind"] == "Namespace":
            # The server's own checks of what comes last, before anything else is written.
            for later in wanted:
                if later["kind"] in ("HostedCluster", "NodePool"):
                    await _apply(client, later, dry_run=True)


async def _finish(client: Client, options: ClusterOptions, existing: Object) -> None:
    """An earlier run came as far as the HostedCluster: what it made is left alone, only the node pool is missing."""
    note(f"going on with the unfinished hosted cluster {options.namespace}/{options.name}")
    options.infra_id = str(existing["spec"].get("infraID") or options.infra_id)
    if options.workers is not None:
        options.workers.release_image = options.release_image or str(existing["spec"]["release"]["image"])
        await _apply(client, labelled(node_pool(options.workers), options.infra_id))


def labelled(obj: Object, infra_id: str) -> Object:
    """What is sent: no status, and the label that ties the object to its cluster's infrastructure."""
    metadata = {**obj["metadata"]}
    metadata["labels"] = {**(metadata.get("labels") or {}), names.LABEL_AUTO_CREATED: infra_id}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}


async def _keep(client: Client, obj: Object, options: ClusterOptions) -> bool:
    """Whether what exists stays as it is: shared objects, and keys that data may already be encrypted with."""
    kind, name = obj["kind"], obj["metadata"]["name"]
    if kind == "Namespace":
        return await client.get_or_none(NAMESPACES, name) is not None
    if kind == "ConfigMap":
        found = await client.get_or_none(CONFIGMAPS, name, options.namespace)
        return found is not None and found.get("data") == obj["data"]
    key = {f"{options.name}-etcd-encryption-key": names.ETCD_KEY_KEY}.get(name, "")
    if options.ssh_private_key is not None and name == f"{options.name}-ssh-key":
        key = "id_rsa"
    if kind != "Secret" or not key:
        return False
    found = await client.get_or_none(SECRETS, name, options.namespace)
    if found is None:
        return False
    if not _holds(found, key):
        raise HcpError(
            f"Secret {options.namespace}/{name} exists but holds no {key}",
            hint="delete it if no cluster uses it, then run the command again",
        )
    note(f"Secret {options.namespace}/{name} exists and is kept")
    return True


def _holds(secret: Object, key: str) -> bool:
    try:
        return bool(a2b_base64((secret.get("data") or {}).get(key, "")))
    except ValueError:
        return False


async def _apply(client: Client, obj: Object, *, dry_run: bool = False) -> None:
    meta = obj["metadata"]
    where = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
    try:
        await client.apply(obj, manager=names.CLI_FIELD_MANAGER, dry_run=dry_run)
    except ApiError as error:
        raise HcpError(
            f'failed to apply object "{where}"',
            cause=str(error),
            hint=error.hint or "what was sent before stays; run the same command again when the cause is gone",
        ) from None
    if not dry_run:
        note(f"Applied {obj['kind']} {where}")


def _next_steps(call: Call, options: ClusterOptions) -> None:
    where = "" if options.namespace == names.DEFAULT_NAMESPACE else f" -n {options.namespace}"
    if not call.switch("wait"):
        note(f"{call.prog} status {options.name}{where} shows how it comes up")
    note(f"{call.prog} create kubeconfig --name {options.name}{where} prints its kubeconfig")
    if options.platform == names.PLATFORM_NONE and options.workers is not None and not call.switch("wait"):
        drive = f"{call.prog} create config-drive --nodepool {options.workers.name}{where} --hostname NAME"
        note(f"{drive} writes what a machine of your own needs to join")
