"""`dump cluster`: which namespaces and clusters are collected, and where each goes."""

from __future__ import annotations

import tarfile
from base64 import b64decode
from pathlib import Path
from typing import Any

from hcp.api import names
from hcp.cli.dump.collect import Collector
from hcp.cli.engine.command import Call
from hcp.cli.engine.terminal import note, warn
from hcp.cli.shared.cluster import connect
from hcp.cli.shared.kubeconfigs import find_cluster, from_secret
from hcp.cli.shared.pools import pools_of
from hcp.errors import HcpError
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube.resources import CRDS, NAMESPACES, NODES, PVS, SECRETS, STORAGECLASSES

ARCHIVE = "hypershift-dump.tar.gz"
CLUSTER_WIDE = (NODES, STORAGECLASSES, PVS, NAMESPACES, CRDS)
SERVICE_PORT = 6443


async def run(call: Call) -> int:
    namespace, name = call.text("namespace"), call.text("name")
    folder = _folder(call.text("artifact-dir"))
    async with connect(call, impersonate=call.text("as")) as client:
        cluster = await find_cluster(client, call.prog, namespace, name)
        control_plane = names.control_plane_namespace(namespace, name)
        spaces = [namespace, control_plane, names.OPERATOR_NAMESPACE]
        collector = Collector(client, folder)
        await collector.cluster_wide(CLUSTER_WIDE)
        for space in spaces:
            await collector.namespace(space, logs=space != namespace)
        for pool in await pools_of(client, namespace, name):
            await _external_infra(client, folder, namespace, pool)
        if call.switch("dump-guest-cluster") or call.switch("dump-guest-cluster-through-kube-service"):
            await _guest(client, call, folder, cluster, control_plane)
    collector.summary()
    if call.switch("archive-dump"):
        _archive(folder)
    print(folder)
    return 0


def _folder(path: str) -> Path:
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HcpError(
            f'cannot make the directory "{path}" given with --artifact-dir', cause=error.strerror or str(error)
        ) from None
    return folder


async def _external_infra(client: Client, folder: Path, namespace: str, pool: dict[str, Any]) -> None:
    """VMs on another cluster: its namespace for them, with logs."""
    status = (pool.get("status") or {}).get("platform") or {}
    credentials = (status.get("kubeVirt") or {}).get("credentials") or {}
    reference = credentials.get("infraKubeConfigSecret") or {}
    if not reference.get("name"):
        return
    try:
        secret = await client.get(SECRETS, reference["name"], namespace)
        data = b64decode(secret["data"][reference.get("key") or names.KUBECONFIG_KEY])
        where = folder / "external-infra-clusters" / f"nodepool-{pool['metadata']['uid']}"
        source = f"The kubeconfig in Secret {namespace}/{reference['name']}"
        async with Client(untrusted_kubeconfig.load(data, source)) as infra:
            await Collector(infra, where).namespace(str(credentials.get("infraNamespace")), logs=True)
    except (HcpError, KeyError, ValueError) as error:
        warn(f"the infra cluster of node pool {pool['metadata']['name']} cannot be read: {error}")


async def _guest(client: Client, call: Call, folder: Path, cluster: dict[str, Any], control_plane: str) -> None:
    """What is inside the hosted cluster, with its administrator's kubeconfig."""
    try:
        config = untrusted_kubeconfig.load(await from_secret(client, call.prog, cluster))
        if call.switch("dump-guest-cluster-through-kube-service"):
            config = config.with_server(f"https://kube-apiserver.{control_plane}.svc.cluster.local:{SERVICE_PORT}")
        async with Client(config) as guest:
            collector = Collector(guest, folder / f"hostedcluster-{cluster['metadata']['name']}")
            await collector.cluster_wide(CLUSTER_WIDE)
            for space in await guest.list(NAMESPACES):
                await collector.namespace(space["metadata"]["name"], logs=True)
            collector.summary()
    except HcpError as error:
        warn(f"the hosted cluster itself cannot be read: {error}")


def _archive(folder: Path) -> None:
    with tarfile.open(folder / ARCHIVE, "w:gz") as archive:
        for entry in sorted(folder.iterdir()):
            if entry.name != ARCHIVE:
                archive.add(entry, entry.name)
    note(f"packed into {folder / ARCHIVE}")
