"""What a hosted cluster has in an external infra cluster, taken away with it.

On the management cluster all of it goes with the hosted namespace. A namespace elsewhere belongs to somebody else and
may hold the machines of several hosted clusters: what is ours there carries the cluster's infra id.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from hcp.api.names import LABEL_INFRA_ID
from hcp.errors import HcpError
from hcp.kube import Client, Resource
from hcp.kube.errors import ApiError, Forbidden, NotFound
from hcp.kube.resources import NETWORKPOLICIES, SERVICES, VIRTUALMACHINES, VMIS
from hcp.kubevirt.infra import Infra, InfraClients, credentials

# EndpointSlices and DataVolumes go with their owners.
_OURS = (SERVICES, VIRTUALMACHINES, VMIS)


async def clear(management: Client, hosted: str, platform: Mapping[str, Any], infra_id: str) -> str:
    """Delete what is left; says what is still there or why it cannot be asked, nothing when all is gone."""
    given = credentials(platform)
    if not given:
        return ""
    infras = InfraClients(management)
    try:
        infra = await infras.get(hosted, given)
    except ApiError:
        raise
    except HcpError:
        return ""  # without a kubeconfig nobody can look; the hosted namespace is going or was never filled
    try:
        return await _clear(infra, f"{LABEL_INFRA_ID}={infra_id}")
    except ApiError as error:
        return f"what it has in namespace {infra.namespace} of the infra cluster ({error})"
    finally:
        await infras.close()


async def _clear(infra: Infra, ours: str) -> str:
    left: list[str] = []
    for resource in _OURS:
        for item in await _list(infra, resource, ours):
            left.append(f"{item['kind']} {item['metadata']['name']}")
            if not item["metadata"].get("deletionTimestamp"):
                await infra.client.delete(resource, item["metadata"]["name"], infra.namespace, missing_ok=True)
    if left:
        return f"{', '.join(left)} in the infra cluster"
    # Last: it keeps machines apart for as long as there are any.
    with contextlib.suppress(Forbidden):  # then we could not write one either
        for item in await _list(infra, NETWORKPOLICIES, ours):
            await infra.client.delete(NETWORKPOLICIES, item["metadata"]["name"], infra.namespace, missing_ok=True)
    return ""


async def _list(infra: Infra, resource: Resource, labels: str) -> list[dict[str, Any]]:
    try:
        return await infra.client.list(resource, infra.namespace, labels)
    except NotFound:
        return []
