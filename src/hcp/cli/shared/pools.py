"""Finding node pools: one by its name, or all of a hosted cluster."""

from __future__ import annotations

from typing import Any

from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.errors import NotFound
from hcp.kube.resources import NODEPOOLS

NOT_FOUND = 4


async def find_pool(client: Client, prog: str, namespace: str, name: str) -> dict[str, Any]:
    """The NodePool, or an error that names the pools there are."""
    try:
        return await client.get(NODEPOOLS, name, namespace)
    except NotFound:
        pass
    try:
        others = [pool["metadata"]["name"] for pool in await client.list(NODEPOOLS, namespace)]
    except NotFound:
        raise HcpError(
            "the management cluster does not know NodePools",
            hint=f"install the operator first: {prog} install",
            exit_code=NOT_FOUND,
        ) from None
    raise HcpError(
        f"there is no node pool {namespace}/{name}",
        hint=f"there are: {', '.join(sorted(others))}" if others else f"{prog} get nodepools -A lists all",
        exit_code=NOT_FOUND,
    )


async def pools_of(client: Client, namespace: str, cluster: str) -> list[dict[str, Any]]:
    found = await client.list(NODEPOOLS, namespace)
    return [pool for pool in found if pool["spec"].get("clusterName") == cluster]
