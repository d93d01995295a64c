"""An external infra cluster: reachable, new enough, and granting the rights that are needed."""

from __future__ import annotations

from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.errors import Forbidden, NotFound
from hcp.kubevirt import passthrough
from hcp.kubevirt.granted import missing, short
from hcp.preflight import guest_volumes, platform
from hcp.preflight.infra_rights import CLUSTER, NAMESPACED, STORAGE
from hcp.preflight.result import Finding, fail, ok, safely, unknown, warn
from hcp.preflight.virtualization import cdi, kubernetes, kubevirt

# Of missing rights so many are named.
MOST = 6


def _owner(namespace: str) -> str:
    return f"the owner of the infra cluster applies: hcp rbac external-infra --infra-namespace {namespace}"


async def rights(client: Client, namespace: str) -> list[Finding]:
    check = "Rights on the infra cluster"
    hint = _owner(namespace)
    needed = tuple(one for one in NAMESPACED if one.needed)
    optional = tuple(one for one in NAMESPACED if not one.needed)
    lacking = await missing(client, needed, namespace)
    nice = await missing(client, optional, namespace) + await missing(client, CLUSTER, None)
    found = []
    if lacking:
        found.append(fail(check, f"missing in namespace {namespace}: {short(lacking, MOST)}", hint))
    if nice:
        found.append(warn(check, f"missing, some things will not work: {short(nice, MOST)}", hint))
    found = found or [ok(check, f"all that is needed in namespace {namespace}")]
    return [*found, await storage_rights(client, namespace, hint)]


async def storage_rights(client: Client, namespace: str, hint: str) -> Finding:
    """Volumes of the guest need more than the guide's Role gives; all else works without."""
    check = "Rights for volumes on the infra cluster"
    lacking = await missing(client, STORAGE, namespace)
    if lacking:
        said = f"hosted clusters have no volumes; missing in namespace {namespace}: {short(lacking, MOST)}"
        return warn(check, said, hint)
    return ok(check, f"all in namespace {namespace}")


async def ingress(client: Client, namespace: str) -> Finding:
    """Names below the infra cluster's own domain; a cluster with a base domain of its own needs none of it."""
    check = "Routes"
    if not await client.has(r.ROUTES):
        said = "it serves no Routes, so hosted clusters have no default ingress there"
        return warn(check, said, "its owner installs a router, or use --base-domain and a Service in front of machines")
    if lacking := await missing(client, passthrough.RIGHTS, namespace):
        said = f"hosted clusters have no default ingress; missing in namespace {namespace}: {short(lacking)}"
        return warn(check, said, f"the owner applies: hcp rbac external-infra --infra-namespace {namespace}")
    return await platform.routes(client)


async def volumes(client: Client, namespace: str) -> list[Finding]:
    """Nobody has to let us look; what cannot be seen is said, as it may be fine."""
    hint = _owner(namespace)
    checks = {
        "Default StorageClass": guest_volumes.default_class(client, hint),
        "Default VolumeSnapshotClass": guest_volumes.snapshots(client, hint),
        "Volumes for running machines": guest_volumes.hotplug(client, hint),
    }
    return [await safely(name, work) for name, work in checks.items()]


async def namespace_exists(client: Client, namespace: str) -> Finding:
    check = "Infra namespace"
    try:
        await client.get(r.NAMESPACES, namespace)
    except NotFound:
        return fail(check, f"{namespace} does not exist on the infra cluster", f"kubectl create namespace {namespace}")
    except Forbidden:
        return unknown(check, f"not allowed to see whether {namespace} exists")
    return ok(check, namespace)


async def check(client: Client, namespace: str) -> list[Finding]:
    """All checks of an external infra cluster."""
    try:
        version = await kubernetes(client)
    except HcpError as error:
        return [fail("Infra cluster", str(error), error.hint or "")]
    found = [version, await kubevirt(client), await cdi(client), await namespace_exists(client, namespace)]
    found += [await ingress(client, namespace), *await volumes(client, namespace)]
    found = [Finding(f"Infra {one.check}" if "nfra" not in one.check else one.check, *_rest(one)) for one in found]
    return found + await rights(client, namespace)


def _rest(one: Finding) -> tuple[str, str, str]:
    return one.state, one.message, one.hint
