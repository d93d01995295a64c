"""All checks together, each on its own: one that fails to run does not hide the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from hcp.api import names
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.errors import Forbidden
from hcp.kube.resources import DEPLOYMENTS
from hcp.preflight import evacuation, guest_volumes, infra, node_guard, platform, shards, virtualization
from hcp.preflight.result import Finding, safely, unknown


async def management(client: Client, ranges: Sequence[str], *, external: bool) -> list[Finding]:
    """The management cluster; with external infra it needs no virtualization of its own."""
    first = await virtualization.kubernetes(client)
    checks: list[tuple[str, Awaitable[Finding]]] = [("Operator", platform.operator(client))]
    if not external:
        checks += [
            ("KubeVirt", virtualization.kubevirt(client)),
            ("CDI", virtualization.cdi(client)),
            ("Hardware virtualization", virtualization.acceleration(client)),
            ("Volumes for running machines", guest_volumes.hotplug(client)),
            ("Default VolumeSnapshotClass", guest_volumes.snapshots(client)),
        ]
    checks += [
        ("Default StorageClass", platform.storage(client)),
        ("LoadBalancer addresses", platform.load_balancer(client)),
        ("Routes", platform.routes(client)),
        ("DNS of the apps domain", platform.name_resolution(client)),
        ("Address ranges", platform.addresses(client, ranges)),
        (evacuation.CHECK, evacuation.check(client)),
    ]
    found = [first, *await asyncio.gather(*(safely(name, work) for name, work in checks))]
    found += await _shards(client)
    return found if external else [*found, *await _guard(client)]


async def _shards(client: Client) -> list[Finding]:
    """Only where the operator's processes share hosted clusters."""
    try:
        deployment = await client.get_or_none(DEPLOYMENTS, "operator", names.OPERATOR_NAMESPACE)
        told = await shards.check(client, deployment or {})
    except Forbidden:
        return []  # told by the check of the operator itself
    except HcpError as error:
        return [unknown(shards.CHECK, str(error), error.hint or "")]
    return [told] if told else []


async def _guard(client: Client) -> list[Finding]:
    try:
        return await node_guard.check(client)
    except HcpError as error:
        return [unknown(node_guard.CHECK, str(error), error.hint or "")]


async def everything(
    client: Client, ranges: Sequence[str], infra_client: Client | None = None, infra_namespace: str = ""
) -> list[Finding]:
    """The management cluster and, when given, the external infra cluster."""
    found = await management(client, ranges, external=infra_client is not None)
    if infra_client is not None:
        found += await infra.check(infra_client, infra_namespace)
        found += await _guard(infra_client)
    return found
