"""How far a node pool's release may be from its cluster's: never newer, at most three minor versions older."""

from __future__ import annotations

from base64 import b64decode
from json import JSONDecodeError, loads
from typing import Any

from hcp.api import names
from hcp.cli.engine.terminal import warn
from hcp.cli.shared import health
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.resources import SECRETS

OLDEST = 3
# OpenShift 5.0 is 4.23 under another name, and so on.
OCP5_OFFSET = 23


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


def minor(version: str) -> tuple[int, int]:
    major, _, rest = version.partition(".")
    digits = rest.partition(".")[0]
    if not (major.isdigit() and digits.isdigit()):
        raise ValueError(version)
    return (4, OCP5_OFFSET + int(digits)) if int(major) == 5 else (int(major), int(digits))


def skew_problem(pool: str, control_plane: str) -> str:
    """Why the two versions do not go together, or nothing."""
    try:
        ours, theirs = minor(pool), minor(control_plane)
    except ValueError as error:
        warn(f"{error} is no version: the release of the node pool is not compared with the cluster's")
        return ""
    if ours > theirs or (ours == theirs and _patch(pool) > _patch(control_plane)):
        return f"node pool version {pool} is newer than the hosted cluster's {control_plane}"
    if ours[0] != theirs[0] or theirs[1] - ours[1] > OLDEST:
        oldest = f"{theirs[0]}.{theirs[1] - OLDEST}"
        return (
            f"node pool version {ours[0]}.{ours[1]} is too old for the hosted cluster's {theirs[0]}.{theirs[1]}; "
            f"the oldest allowed is {oldest}"
        )
    return ""


def _patch(version: str) -> int:
    rest = version.split(".")[2:3]
    digits = rest[0].split("-")[0] if rest else "0"
    return int(digits) if digits.isdigit() else 0
