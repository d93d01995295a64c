"""Whether the release of a node pool fits its cluster, before anything is asked of the operator."""

from __future__ import annotations

from base64 import b64decode
from json import JSONDecodeError, loads
from typing import Any

from hcp.api import names, versions
from hcp.cli.engine.terminal import warn
from hcp.cli.shared import health
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.resources import SECRETS


async def check_skew(client: Client, cluster: dict[str, Any], image: str) -> None:
    """Reads the version out of the pool's release; what cannot be read is only warned about."""
    control_plane = cluster_version(cluster)
    if not control_plane:
        warn("the hosted cluster does not report a version yet: the release of the node pool is not compared with it")
        return
    try:
        pool = await release_version(client, cluster, image)
    except HcpError as error:
        warn(f"the release {image} cannot be read ({error}): its version is not compared with the cluster's")
        return
    problem = skew_problem(pool, control_plane)
    if problem:
        raise HcpError(f"--release-image {image} does not fit the hosted cluster", cause=problem)


def cluster_version(cluster: dict[str, Any]) -> str:
    """Newest completed version, else the newest begun, else the one wanted; empty on a brand-new cluster."""
    found = health.version(cluster)
    if found:
        return found
    entries = health.history(cluster)
    if entries and entries[0].get("version"):
        return str(entries[0]["version"])
    desired = ((cluster.get("status") or {}).get("version") or {}).get("desired") or {}
    return str(desired.get("version") or "")


async def release_version(client: Client, cluster: dict[str, Any], image: str) -> str:
    from hcp import release
    from hcp.oci import RegistryClient

    meta = cluster["metadata"]
    secret = await client.get_or_none(SECRETS, cluster["spec"]["pullSecret"]["name"], meta["namespace"])
    raw = ((secret or {}).get("data") or {}).get(names.PULL_SECRET_KEY, "")
    try:
        auths = loads(b64decode(raw)) if raw else None
    except (ValueError, JSONDecodeError) as error:
        raise HcpError("the pull secret of the cluster cannot be read", cause=str(error)) from None
    async with RegistryClient(auths=auths) as registry:
        return (await release.read(registry, image)).version


def skew_problem(pool: str, control_plane: str) -> str:
    """Why the two versions do not go together, or nothing."""
    try:
        found = versions.skew_problem(versions.parse_version(pool), versions.parse_version(control_plane))
    except HcpError as error:
        warn(f"{error}: the release of the node pool is not compared with the cluster's")
        return ""
    return f"{found} (node pool {pool}, hosted cluster {control_plane})" if found else ""
