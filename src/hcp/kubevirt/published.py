"""Where the services of a hosted cluster are published, and which of that is on addresses of management nodes.

A user writes names, addresses and ports freely. Machines are let through only to addresses that nodes really have,
and only to the port at which the management cluster itself publishes the service.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hcp.api.addresses import is_address
from hcp.api.names import (
    API_SERVICE,
    IGNITION_NODE_PORT,
    IGNITION_SERVER,
    KONNECTIVITY_SERVICE,
    LABEL_CONTROL_PLANE_NAMESPACE,
    ROUTE_PORT,
)
from hcp.api.paths import at
from hcp.kube.resources import ROUTES, SERVICES
from hcp.runtime.context import OperatorContext

Object = dict[str, Any]
_NAMES = {"APIServer": API_SERVICE, "Konnectivity": KONNECTIVITY_SERVICE}
_LOOKUP_SECONDS = 10.0
_REMEMBERED_SECONDS = 60.0


@dataclass(frozen=True)
class Published:
    """One service: how, and under which hosts and port."""

    service: str
    kind: str
    hosts: tuple[str, ...]
    port: int


@dataclass(frozen=True)
class OnNodes:
    """What of the published services is on nodes, and what should be and is not."""

    targets: tuple[tuple[str, int], ...] = ()
    problems: tuple[str, ...] = ()
    # Names were asked for: nobody tells when their addresses change.
    names: bool = False


class PublishedServices:
    """Reads Services and Routes of hosted clusters from shared caches."""

    def __init__(self, ctx: OperatorContext) -> None:
        self._namespace = ctx.namespace
        self._services = ctx.informers.get(SERVICES, labels=LABEL_CONTROL_PLANE_NAMESPACE)
        self._routes = ctx.informers.get(ROUTES, labels=LABEL_CONTROL_PLANE_NAMESPACE)
        self._own_services = ctx.informers.get(SERVICES, ns=ctx.namespace)
        self._own_routes = ctx.informers.get(ROUTES, ns=ctx.namespace)
        self.resolver = Resolver()

    @property
    def services(self) -> Any:
        return self._services

    def of(self, spec: Mapping[str, Any], hosted: str) -> list[Published]:
        """What a HostedCluster publishes and where, as far as it is known yet."""
        result = []
        for entry in spec.get("services") or []:
            name = str(entry.get("service"))
            if name in _NAMES:
                service = self._services.get(_NAMES[name], hosted)
                route = self._routes.get(_NAMES[name], hosted)
            elif name == "Ignition":
                service = self._own_services.get(IGNITION_NODE_PORT, self._namespace)
                route = self._own_routes.get(IGNITION_SERVER, self._namespace)
            else:
                continue
            found = published(name, entry.get("servicePublishingStrategy") or {}, service, route)
            if found is not None:
                result.append(found)
        return result


def published(
    name: str, strategy: Mapping[str, Any], service: Mapping[str, Any] | None, route: Mapping[str, Any] | None
) -> Published | None:
    """One service; None while the cluster has not given it a port or a host. Ports are never the user's own word."""
    kind = str(strategy.get("type") or "Route")
    if kind == "Route":
        named = {at(strategy, "route.hostname"), at(route, "spec.host")}
        return Published(name, kind, tuple(sorted(host for host in named if host)), ROUTE_PORT)
    ports = at(service, "spec.ports") or [{}]
    if kind == "NodePort":
        host, port = at(strategy, "nodePort.address") or "", int(ports[0].get("nodePort") or 0)
        return Published(name, kind, (host,), port) if host and port else None
    # A load balancer whose addresses are those of nodes; its name is the user's and says nothing.
    ingress = at(service, "status.loadBalancer.ingress") or []
    hosts = tuple(entry["ip"] for entry in ingress if entry.get("ip"))
    port = int(ports[0].get("port") or 0)
    return Published(name, kind, hosts, port) if hosts and port else None


class Resolver:
    """Addresses behind names, a few lookups at a time, each remembered for a minute."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, frozenset[str]]] = {}
        self._slots = asyncio.Semaphore(4)

    async def addresses(self, host: str) -> frozenset[str]:
        """All addresses of a host; an address is its own, a name that cannot be looked up has none."""
        if is_address(host):
            return frozenset({host})
        known = self._known.get(host)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        async with self._slots:
            try:
                answers = await asyncio.wait_for(
                    asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM), _LOOKUP_SECONDS
                )
            except (OSError, UnicodeError, TimeoutError):
                answers = []
        found = frozenset(str(answer[4][0]) for answer in answers)
        if len(self._known) > 10_000:
            self._known.clear()
        self._known[host] = (time.monotonic() + _REMEMBERED_SECONDS, found)
        return found


async def on_nodes(published: Sequence[Published], nodes: Collection[str], resolver: Resolver) -> OnNodes:
    """Which of these answer on addresses of nodes."""
    targets: set[tuple[str, int]] = set()
    problems: list[str] = []
    names = False
    for item in published:
        for host in item.hosts:
            names = names or not is_address(host)
            behind = await resolver.addresses(host)
            targets |= {(address, item.port) for address in behind if address in nodes}
            if item.kind == "NodePort" and not behind & set(nodes):
                problems.append(_not_a_node(item.service, host, behind))
    return OnNodes(tuple(sorted(targets)), tuple(problems), names)


def _not_a_node(service: str, host: str, behind: Collection[str]) -> str:
    said = f"{host} is not the address of a node of the management cluster"
    if not is_address(host):
        resolved = f"resolves to {', '.join(sorted(behind))}" if behind else "cannot be resolved"
        said = f"{host} {resolved}, which is no node of the management cluster" if behind else f"{host} {resolved}"
    return f"service {service}: {said}; machines are not let through to it beyond what they reach anyway"
