"""Objects of Cluster API that their controllers will never let go, because what they stand for cannot be reached."""

from __future__ import annotations

from collections.abc import Collection

from hcp.kube import Client
from hcp.kube.errors import NotFound
from hcp.kube.resources import (
    CAPI_CLUSTERS,
    KUBEVIRTCLUSTERS,
    KUBEVIRTMACHINES,
    MACHINEDEPLOYMENTS,
    MACHINES,
    MACHINESETS,
)

# Infrastructure first: a Machine would only wait for it.
_ALL = (KUBEVIRTMACHINES, MACHINES, MACHINESETS, MACHINEDEPLOYMENTS, KUBEVIRTCLUSTERS, CAPI_CLUSTERS)


async def let_go(client: Client, hosted: str, machines: Collection[str] | None = None) -> None:
    """Delete and remove finalizers: of these machines, or of everything Cluster API has in a hosted namespace."""
    for resource in (KUBEVIRTMACHINES, MACHINES) if machines is not None else _ALL:
        try:
            found = await client.list(resource, hosted)
        except NotFound:
            continue
        for item in found:
            name = item["metadata"]["name"]
            if machines is not None and name not in machines and not _belongs(item, machines):
                continue
            try:
                await client.delete(resource, name, hosted)
                if item["metadata"].get("finalizers"):
                    await client.patch(resource, name, hosted, {"metadata": {"finalizers": None}})
            except NotFound:
                continue


def _belongs(item: dict[str, object], machines: Collection[str]) -> bool:
    """A KubevirtMachine may have another name than the Machine that owns it."""
    metadata = item["metadata"]
    owners = metadata.get("ownerReferences") or [] if isinstance(metadata, dict) else []
    return any(owner.get("kind") == "Machine" and owner.get("name") in machines for owner in owners)
