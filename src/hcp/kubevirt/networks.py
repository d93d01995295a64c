"""Which pod and service networks a cluster has: from its configuration, else from what its objects show."""

from __future__ import annotations

from hcp.kube import Client, Resource
from hcp.kube.errors import ApiError, Forbidden, NotFound
from hcp.kube.resources import ENDPOINTSLICES, NETWORK_CONFIGS, NODES

_SERVICE_CIDRS = Resource("networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR", False)


async def cluster_networks(client: Client) -> list[str]:
    """All pod and service CIDRs; empty when the cluster does not let us know them."""
    try:
        config = await client.get(NETWORK_CONFIGS, "cluster")
    except (NotFound, Forbidden):
        return await _observed(client)
    status = config.get("status") or config.get("spec") or {}
    found = [entry.get("cidr", "") for entry in status.get("clusterNetwork") or []]
    found += list(status.get("serviceNetwork") or [])
    return sorted({cidr for cidr in found if cidr}) or await _observed(client)


async def api_endpoints(client: Client) -> list[tuple[str, int]]:
    """The addresses and ports behind the cluster's own ``kubernetes`` Service; empty when we may not know them."""
    try:
        slices = await client.list(ENDPOINTSLICES, "default", "kubernetes.io/service-name=kubernetes")
    except ApiError:
        return []
    found: set[tuple[str, int]] = set()
    for item in slices:
        ports = [int(port["port"]) for port in item.get("ports") or [] if port.get("port")]
        for endpoint in item.get("endpoints") or []:
            found.update((address, port) for address in endpoint.get("addresses") or [] for port in ports)
    return sorted(found)


async def _observed(client: Client) -> list[str]:
    """A plain Kubernetes cluster: the nodes' pod networks and the service networks of the API."""
    found: set[str] = set()
    try:
        for node in await client.list(NODES):
            spec = node.get("spec") or {}
            found.update(spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else []))
    except ApiError:
        return []
    try:
        for item in await client.list(_SERVICE_CIDRS):
            found.update((item.get("spec") or {}).get("cidrs") or [])
    except ApiError:
        return sorted(found)
    return sorted(found)
