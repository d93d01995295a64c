"""An external infra cluster: reachable, new enough, and granting the rights that are needed."""

from __future__ import annotations

import asyncio

from hcp.errors import HcpError
from hcp.kube import Client, Resource
from hcp.kube import resources as r
from hcp.kube.errors import Forbidden, NotFound
from hcp.preflight.infra_rights import CLUSTER, NAMESPACED, STORAGE, Right
from hcp.preflight.result import Finding, fail, ok, unknown, warn
from hcp.preflight.virtualization import cdi, kubernetes, kubevirt

PARALLEL = 10


async def missing(client: Client, rights: tuple[Right, ...], namespace: str | None) -> list[str]:
    """`verb resource` for everything that is needed and not granted."""
    slots = asyncio.Semaphore(PARALLEL)

    async def one(right: Right, name: str, verb: str) -> str:
        plural, _, sub = name.partition("/")
        async with slots:
            allowed = await client.allowed(verb, Resource(right.group, "v1", plural, ""), namespace, sub)
        full = f"{name}.{right.group}" if right.group else name
        return "" if allowed else f"{verb} {full}"

    asked = [one(right, name, verb) for right in rights for name in right.resources for verb in right.verbs]
    return [answer for answer in await asyncio.gather(*asked) if answer]


async def rights(client: Client, namespace: str) -> list[Finding]:
    check = "Rights on the infra cluster"
    hint = f"the owner of the infra cluster applies: hcp rbac external-infra --infra-namespace {namespace}"
    needed = tuple(one for one in NAMESPACED if one.needed)
    optional = tuple(one for one in NAMESPACED if not one.needed)
    lacking = await missing(client, needed, namespace)
    nice = await missing(client, optional, namespace) + await missing(client, CLUSTER, None)
    found = []
    if lacking:
        found.append(fail(check, f"missing in namespace {namespace}: {_short(lacking)}", hint))
    if nice:
        found.append(warn(check, f"missing, some things will not work: {_short(nice)}", hint))
    found = found or [ok(check, f"all that is needed in namespace {namespace}")]
    return [*found, await storage_rights(client, namespace, hint)]


async def storage_rights(client: Client, namespace: str, hint: str) -> Finding:
    """Volumes of the guest need more than the guide's Role gives; all else works without."""
    check = "Rights for volumes on the infra cluster"
    lacking = await missing(client, STORAGE, namespace)
    if lacking:
        said = f"hosted clusters have no volumes; missing in namespace {namespace}: {_short(lacking)}"
        return warn(check, said, hint)
    return ok(check, f"all in namespace {namespace}")


def _short(words: list[str], most: int = 6) -> str:
    shown = ", ".join(words[:most])
    return shown if len(words) <= most else f"{shown} and {len(words) - most} more"


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
    found = [Finding(f"Infra {one.check}" if "nfra" not in one.check else one.check, *_rest(one)) for one in found]
    return found + await rights(client, namespace)


def _rest(one: Finding) -> tuple[str, str, str]:
    return one.state, one.message, one.hint
