"""`create nodepool` without --render: check the pool against its cluster, then create it."""

from __future__ import annotations

from typing import Any

from hcp.api import names
from hcp.cli.create.nodepool.objects import node_pool
from hcp.cli.create.options import WorkerOptions
from hcp.cli.engine.command import Call
from hcp.cli.engine.terminal import note, warn
from hcp.cli.shared.cluster import connect
from hcp.cli.shared.skew import check_skew
from hcp.cli.shared.waiting import wait_pool
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.errors import AlreadyExists, NotFound
from hcp.kube.resources import HOSTEDCLUSTERS

NOT_FOUND = 4


async def create(call: Call, options: WorkerOptions) -> int:
    async with connect(call) as client:
        cluster = await hosted_cluster(client, options)
        _architecture(cluster, options)
        if options.release_image:
            await check_skew(client, cluster, options.release_image)
        else:
            options.release_image = str(cluster["spec"].get("release", {}).get("image") or "")
        pool = {key: value for key, value in node_pool(options).items() if key != "status"}
        try:
            await client.create(pool, manager=names.CLI_FIELD_MANAGER)
        except AlreadyExists:
            raise HcpError(
                f"NodePool {options.namespace}/{options.name} already exists",
                hint=f"{call.prog} scale nodepool {options.name} changes its size; choose another --name for a new one",
            ) from None
        print(f"NodePool {options.name} created", flush=True)
        if call.switch("wait"):
            await wait_pool(client, call.prog, options.namespace, options.name, call.seconds("timeout"))
            note(f"all nodes of node pool {options.namespace}/{options.name} are ready")
    return 0


async def hosted_cluster(client: Client, options: WorkerOptions) -> dict[str, Any]:
    where = f"{options.namespace}/{options.cluster_name}"
    try:
        cluster = await client.get(HOSTEDCLUSTERS, options.cluster_name, options.namespace)
    except NotFound:
        raise HcpError(
            f"failed to get HostedCluster {where}: there is none",
            hint="--cluster-name and --namespace name the hosted cluster; hcp get clusters -A lists all",
            exit_code=NOT_FOUND,
        ) from None
    platform = cluster["spec"].get("platform", {}).get("type")
    if platform != options.platform:
        raise HcpError(
            f"NodePool platform type {options.platform} must be HostedCluster type {platform}",
            hint=f"hcp create nodepool {str(platform).lower()} makes such a pool",
        )
    return cluster


def _architecture(cluster: dict[str, Any], options: WorkerOptions) -> None:
    payload = str((cluster.get("status") or {}).get("payloadArch") or "")
    if not payload:
        warn(f"the hosted cluster does not report its release's architecture yet: --arch {options.arch} is not checked")
    elif payload not in ("Multi", options.arch.upper()):
        raise HcpError(
            f"--arch {options.arch} does not fit the release of the hosted cluster, which is for {payload}",
            hint=f"--arch {payload.lower()}, or a cluster with a multi-architecture release",
        )
