"""Which networks and addresses a cluster has: from its configuration, else from what its objects show.

Of the management cluster they are followed by watches; of another cluster they are asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.addresses import is_address, is_network
from hcp.api.paths import at
from hcp.kube import Client, Resource
from hcp.kube.errors import ApiError
from hcp.kube.resources import ENDPOINTSLICES, NETWORK_CONFIGS, NODES, SERVICECIDRS
from hcp.kubevirt import egress
from hcp.runtime.context import Informers

Object = dict[str, Any]
_API_SERVICE = "kubernetes.io/service-name=kubernetes"
_API_NAMESPACE = "default"


@dataclass(frozen=True)
class Networks:
    """What belongs to a cluster itself."""

    # Of pods and services.
    inside: tuple[str, ...] = ()
    # Addresses of nodes.
    nodes: tuple[str, ...] = ()
    # Addresses and ports behind the cluster's own `kubernetes` Service.
    api: tuple[tuple[str, int], ...] = ()

    @property
    def hidden(self) -> list[str]:
        """What tenants have no business with, as networks."""
        return egress.hidden(self.inside, self.nodes, self.api)

    @property
    def machines(self) -> list[str]:
        """Its nodes and its API server alone: addresses that mean the same from another cluster."""
        return egress.hidden((), self.nodes, self.api)


class ManagementNetworks:
    """The management cluster's own, from caches that are shared by all who ask."""

    def __init__(self, informers: Informers) -> None:
        self._config = informers.get(NETWORK_CONFIGS)
        self._nodes = informers.get(NODES)
        self._services = informers.get(SERVICECIDRS)
        self._slices = informers.get(ENDPOINTSLICES, ns=_API_NAMESPACE, labels=_API_SERVICE)
        self._known: Networks | None = None
        self.on_change(self._forget)

    def now(self) -> Networks:
        """Asked for in every pass over a cluster, and gone through anew only when one of them changed."""
        if self._known is None:
            known = (self._nodes.list(), self._services.list(), self._slices.list())
            self._known = found(self._config.get("cluster"), *known)
        return self._known

    def _forget(self) -> None:
        self._known = None

    def on_change(self, tell: Callable[[], None]) -> None:
        """Call `tell` when one of them may be another; nodes report every few seconds, which is none of this."""
        for informer in (self._config, self._nodes, self._services, self._slices):

            def listener(old: Object | None, new: Object | None) -> None:
                if _told(old) != _told(new):
                    tell()

            informer.add_listener(listener)


def found(
    config: Mapping[str, Any] | None,
    nodes: Iterable[Mapping[str, Any]],
    service_cidrs: Iterable[Mapping[str, Any]],
    slices: Iterable[Mapping[str, Any]],
) -> Networks:
    """The networks that these objects tell of."""
    nodes = list(nodes)
    inside = _configured(config) or {*_pod_networks(nodes), *_service_networks(service_cidrs)}
    return Networks(
        tuple(sorted(text for text in inside if is_network(text))),
        tuple(sorted({address for node in nodes for address in addresses_of_node(node)})),
        tuple(sorted({pair for item in slices for pair in _endpoints(item)})),
    )


async def cluster_networks(client: Client) -> list[str]:
    """All pod and service CIDRs of another cluster; empty when it does not let us know them."""
    return list((await networks_of(client)).inside)


async def networks_of(client: Client) -> Networks:
    """What another cluster lets us know; each part that we may not read is empty."""
    config, nodes, services, slices = await asyncio.gather(
        _listed(client, NETWORK_CONFIGS),
        _listed(client, NODES),
        _listed(client, SERVICECIDRS),
        _listed(client, ENDPOINTSLICES, _API_NAMESPACE, _API_SERVICE),
    )
    named = next((item for item in config if item["metadata"]["name"] == "cluster"), None)
    return found(named, nodes, services, slices)


async def _listed(client: Client, resource: Resource, ns: str | None = None, labels: str | None = None) -> list[Object]:
    try:
        if resource is NETWORK_CONFIGS:  # the right to read it is given for one object
            return [await client.get(resource, "cluster")]
        return await client.list(resource, ns, labels)
    except ApiError:
        return []


def addresses_of_node(node: Mapping[str, Any]) -> list[str]:
    """All addresses of a node, without its names."""
    entries = at(node, "status.addresses") or []
    return [entry["address"] for entry in entries if is_address(entry.get("address") or "")]


def _configured(config: Mapping[str, Any] | None) -> set[str]:
    told = (config or {}).get("status") or (config or {}).get("spec") or {}
    texts = {str(entry.get("cidr") or "") for entry in told.get("clusterNetwork") or []}
    return (texts | {str(text) for text in told.get("serviceNetwork") or []}) - {""}


def _pod_networks(nodes: Iterable[Mapping[str, Any]]) -> set[str]:
    specs = [node.get("spec") or {} for node in nodes]
    return {text for spec in specs for text in spec.get("podCIDRs") or [spec.get("podCIDR") or ""]} - {""}


def _service_networks(service_cidrs: Iterable[Mapping[str, Any]]) -> set[str]:
    return {str(text) for item in service_cidrs for text in at(item, "spec.cidrs") or []}


def _endpoints(item: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    ports = [int(port["port"]) for port in item.get("ports") or [] if port.get("port")]
    for endpoint in item.get("endpoints") or []:
        for address in endpoint.get("addresses") or []:
            yield from ((address, port) for port in ports if is_address(address))


def _told(item: Object | None) -> Any:
    """The part of an object that `found` reads."""
    if item is None:
        return None
    if item.get("kind") == NODES.kind:
        return addresses_of_node(item), _pod_networks([item])
    if item.get("kind") == NETWORK_CONFIGS.kind:
        return _configured(item)
    return list(_endpoints(item)), at(item, "spec.cidrs")
