"""`create config-drive`: read the pool's user data, note the machine's name in the pool, write the image."""

from __future__ import annotations

import os
import sys
from binascii import a2b_base64
from typing import Any

from hcp.api import names
from hcp.cli.engine import grammar
from hcp.cli.engine.command import Call, UsageError
from hcp.cli.engine.terminal import note
from hcp.cli.shared.cluster import connect
from hcp.cli.shared.pools import find_pool
from hcp.errors import HcpError
from hcp.ignition.configdrive import config_drive
from hcp.kube import Client
from hcp.kube.errors import Conflict, NotFound
from hcp.kube.resources import NODEPOOLS, SECRETS

Object = dict[str, Any]
PRIVATE = 0o600
TRIES = 5


async def run(call: Call) -> int:
    namespace, name, host = call.text("namespace"), call.text("nodepool"), call.text("hostname")
    problem = names.label_problem(host)
    if problem:
        raise grammar.refuse("hostname", host, f"it {problem}", "lower-case letters, digits and '-', at most 63")
    async with connect(call) as client:
        pool = await find_pool(client, call.prog, namespace, name)
        _refuse_others(call, pool)
        document = await _user_data(client, call, pool)
        if call.switch("approve"):
            await expect(client, call.prog, pool, host)
    if call.switch("ignition"):
        sys.stdout.write(document)
        return 0
    path = call.text("output") or f"{host}.iso"
    _write(path, config_drive(document, host))
    print(path)
    note(f"attach it as a second disk to a machine that boots the node disk; it joins as node {host}")
    if not call.switch("approve"):
        note("its certificate waits for kubectl certificate approve, with the hosted cluster's kubeconfig")
    return 0


def _refuse_others(call: Call, pool: Object) -> None:
    platform = str(((pool["spec"].get("platform") or {}).get("type")) or "")
    if platform != names.PLATFORM_NONE:
        raise HcpError(
            f"machines of node pool {pool['metadata']['name']} are made by the operator",
            cause=f"its platform is {platform}",
            hint=f"{call.prog} create nodepool none makes a pool for machines of your own",
        )


async def _user_data(client: Client, call: Call, pool: Object) -> str:
    """The pointer document for the pool's current configuration."""
    meta = pool["metadata"]
    cluster = str(pool["spec"].get("clusterName") or "")
    target = (meta.get("annotations") or {}).get(names.ANNOTATION_CURRENT_CONFIG_VERSION, "")
    try:
        hosted = names.control_plane_namespace(meta["namespace"], cluster)
        found = await client.get(SECRETS, f"user-data-{meta['name']}-{target}", hosted) if target else {}
    except NotFound:
        found = {}
    text = a2b_base64((found.get("data") or {}).get("value", "")).decode()
    if not text:
        raise HcpError(
            f"node pool {meta['name']} has no document for machines yet",
            hint=f"{call.prog} status {cluster} -n {meta['namespace']} shows what it waits for; then try again",
        )
    return text


async def expect(client: Client, prog: str, pool: Object, host: str) -> None:
    """Add the machine to those the pool expects; others may do the same at this moment."""
    meta = pool["metadata"]
    for _ in range(TRIES):
        known = (meta.get("annotations") or {}).get(names.ANNOTATION_EXPECTED_NODES, "")
        expected = [part.strip() for part in known.split(",") if part.strip()]
        if host in expected:
            return
        value = ",".join([*expected, host])
        version = meta["resourceVersion"]
        body = {"metadata": {"resourceVersion": version, "annotations": {names.ANNOTATION_EXPECTED_NODES: value}}}
        try:
            await client.patch(NODEPOOLS, meta["name"], meta["namespace"], body, manager=names.CLI_FIELD_MANAGER)
            return
        except Conflict:
            meta = (await find_pool(client, prog, meta["namespace"], meta["name"]))["metadata"]
    raise HcpError(
        f"node pool {meta['name']} changes all the time: the machine's name could not be noted in it",
        hint="run the command again, or with --approve=false",
    )


def _write(path: str, image: bytes) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE)
        with open(handle, "wb") as file:  # noqa: PTH123 - the handle was opened for its owner alone
            os.fchmod(handle, PRIVATE)
            file.write(image)
    except (OSError, ValueError) as error:
        raise UsageError(
            f'cannot write the file "{path}"',
            cause=getattr(error, "strerror", None) or str(error),
            hint="--output takes the path of a file in a directory you may write to",
        ) from None
