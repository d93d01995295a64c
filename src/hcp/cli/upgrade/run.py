"""`upgrade cluster` and `upgrade nodepool`: change the release, then wait if asked."""

from __future__ import annotations

import asyncio
from typing import Any

from hcp.api import names
from hcp.cli.engine.command import Call
from hcp.cli.engine.terminal import warn
from hcp.cli.shared import health
from hcp.cli.shared.cluster import connect
from hcp.cli.shared.kubeconfigs import find_cluster
from hcp.cli.shared.pools import find_pool, pools_of
from hcp.cli.shared.release_default import default_release
from hcp.cli.shared.skew import check_skew, release_version
from hcp.cli.shared.waiting import wait_cluster, wait_pool
from hcp.cli.upgrade import updates
from hcp.errors import HcpError
from hcp.kube import Client, Resource
from hcp.kube.resources import HOSTEDCLUSTERS, NODEPOOLS

Object = dict[str, Any]
AGAIN = "the upgrade goes on by itself; run the same command again to go on waiting"


async def cluster(call: Call) -> int:
    """The control plane first; pools only after it when both were asked for with --wait."""
    namespace, name = call.text("namespace"), call.arg("NAME")
    limit = call.seconds("timeout")
    clock = asyncio.get_running_loop().time
    end = clock() + limit
    async with connect(call) as client:
        found = await find_cluster(client, call.prog, namespace, name)
        image = updates.chosen(call, found) or call.text("release-image") or await default_release(client)
        await _move(client, HOSTEDCLUSTERS, found, image)
        if call.switch("wait"):
            await wait_cluster(client, call.prog, namespace, name, limit, with_nodes=False, image=image, again=AGAIN)
        if call.switch("node-pools"):
            pools = await pools_of(client, namespace, name)
            for pool in pools:
                await _move(client, NODEPOOLS, pool, image)
            if call.switch("wait"):
                for pool in pools:
                    left = max(end - clock(), 0.001) if limit else 0
                    version = await _version_of(client, found, image)
                    called = pool["metadata"]["name"]
                    await wait_pool(client, call.prog, namespace, called, left, version=version, again=AGAIN)
    return 0


async def nodepool(call: Call) -> int:
    namespace, name = call.text("namespace"), call.arg("NAME")
    async with connect(call) as client:
        pool = await find_pool(client, call.prog, namespace, name)
        owner = await find_cluster(client, call.prog, namespace, str(pool["spec"].get("clusterName")))
        image = call.text("release-image")
        if image:
            await check_skew(client, owner, image)
        else:
            image = str(owner["spec"]["release"]["image"])
        await _move(client, NODEPOOLS, pool, image)
        if call.switch("wait"):
            version = await _version_of(client, owner, image)
            seconds = call.seconds("timeout")
            await wait_pool(client, call.prog, namespace, name, seconds, version=version, again=AGAIN)
    return 0


async def _version_of(client: Client, owner: Object, image: str) -> str:
    """The version a release image stands for: from the cluster's history, else out of the image, else unknown."""
    meta = owner["metadata"]
    fresh = await client.get(HOSTEDCLUSTERS, meta["name"], meta["namespace"])
    for entry in health.history(fresh):
        if entry.get("image") == image and entry.get("version"):
            return str(entry["version"])
    try:
        return await release_version(client, fresh, image)
    except HcpError as error:
        warn(f"the version of {image} is not known ({error}): only waiting for the nodes to settle")
        return ""


async def _move(client: Client, resource: Resource, obj: Object, image: str) -> None:
    meta = obj["metadata"]
    before = str((obj["spec"].get("release") or {}).get("image") or "")
    if before == image:
        print(f"{resource.kind} {meta['name']} is on {image} already", flush=True)
        return
    body = {"spec": {"release": {"image": image}}}
    await client.patch(resource, meta["name"], meta["namespace"], body, manager=names.CLI_FIELD_MANAGER)
    print(f"{resource.kind} {meta['name']} moves from {before or 'no release'} to {image}", flush=True)
