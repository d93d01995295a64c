"""Keeping the bootstrap server reachable: its authority and serving certificate for all its names, and its node port.

The server is one for all clusters. The node port is there while a hosted cluster asks for it, as those of platform None
do by default: machines outside may not know the name of a Route.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hcp import pki
from hcp.api.manifests import service
from hcp.api.names import IGNITION_NODE_PORT, IGNITION_SERVER
from hcp.api.paths import at
from hcp.ignition.certs import (
    CA_SECRET,
    SERVING_SECRET,
    Wanted,
    ca_secret,
    choose,
    read_pair,
    serving_leaf,
    serving_secret,
)
from hcp.kube.errors import AlreadyExists
from hcp.kube.resources import ROUTES, SECRETS, SERVICES
from hcp.runtime import Controller, Result, apply_if_changed
from hcp.runtime.context import OperatorContext
from hcp.runtime.store import key_of

Object = dict[str, Any]
_DAILY = 24 * 3600.0


class EndpointCertificates:
    """One key, one pass: the whole state fits in two Secrets."""

    def __init__(self, ctx: OperatorContext) -> None:
        self._ctx = ctx
        self._routes = ctx.informers.get(ROUTES, ns=ctx.namespace)
        self._clusters = ctx.informers.all_clusters()
        self._services = ctx.informers.get(SERVICES, ns=ctx.namespace)
        self._told: dict[str, str] = {}
        self.controller = Controller("ignition-certificates", self._reconcile, workers=1)

    def wire(self) -> Controller:
        """Look again when a Route or a published endpoint changes."""
        self.controller.watch(self._routes, lambda route: (IGNITION_SERVER,))
        # Of a whole fleet's changes few are about this, and a pass goes through all clusters.
        self.controller.watch(self._clusters, lambda cluster: (IGNITION_SERVER,), reads=_asks)
        self.controller.watch(
            self._services, lambda one: [IGNITION_SERVER] if one["metadata"]["name"] == IGNITION_NODE_PORT else []
        )
        self.controller.enqueue(IGNITION_SERVER)
        return self.controller

    def _own(self) -> Iterable[str]:
        for route in self._routes.list(self._ctx.namespace):
            if route["metadata"]["name"].startswith(IGNITION_SERVER) and at(route, "spec.host"):
                yield str(route["spec"]["host"])

    def _wanted(self) -> Iterable[Wanted]:
        for cluster in self._clusters.list():
            meta = cluster["metadata"]
            for host in _hosts_of(cluster):
                yield Wanted(host, key_of(cluster), str(meta.get("creationTimestamp") or ""))

    def _tell(self, refused: dict[str, str]) -> None:
        """Each cluster whose name is left out is told so; once, and again only when it is another name."""
        for key, why in refused.items():
            cluster = self._clusters.get_key(key)
            if cluster is not None and self._told.get(key) != why:
                message = f"Machines cannot fetch their configuration under a name this cluster wants: {why}."
                self._ctx.events.event(cluster, "Warning", "IgnitionNameRefused", message)
        self._told = dict(refused)

    async def _reconcile(self, _key: str) -> Result | None:
        client, namespace = self._ctx.client, self._ctx.namespace
        authority = await client.get_or_none(SECRETS, CA_SECRET, namespace)
        if authority is None:
            try:
                authority = await client.create(ca_secret(pki.new_ca("ignition-root-ca"), namespace))
            except AlreadyExists:
                authority = await client.get(SECRETS, CA_SECRET, namespace)
        ca = read_pair(authority, "ca.crt", "ca.key")
        await self._publish()
        chosen = choose(self._own(), self._wanted())
        self._tell(chosen.refused)
        leaf = serving_leaf(chosen.hosts, namespace)
        known = await client.get_or_none(SECRETS, SERVING_SECRET, namespace)
        if known is None or pki.needs_renewal(read_pair(known, "tls.crt", "tls.key"), ca.cert_pem, leaf):
            await apply_if_changed(client, None, serving_secret(pki.issue_leaf(ca, leaf), ca.cert_pem, namespace))
        return Result(_DAILY)

    async def _publish(self) -> None:
        """A Service of its own: the one that `hcp install` made is not ours to change."""
        wanted = any(_by_node_port(cluster) for cluster in self._clusters.list())
        known = self._services.get(IGNITION_NODE_PORT, self._ctx.namespace)
        if wanted:
            await apply_if_changed(self._ctx.client, self._services, node_port_service(self._ctx.namespace))
        elif known is not None:
            await self._ctx.client.delete(SERVICES, IGNITION_NODE_PORT, self._ctx.namespace, missing_ok=True)


def node_port_service(namespace: str) -> Object:
    """The bootstrap server on a port of every node of the management cluster, which chooses the number."""
    app = {"app": IGNITION_SERVER}
    return service(IGNITION_NODE_PORT, namespace, {"https": 443}, labels=app, selector=app, kind="NodePort")


def _asks(cluster: Object) -> Any:
    """What a pass reads of a cluster."""
    return sorted(_hosts_of(cluster)), _by_node_port(cluster)


def _by_node_port(cluster: Object) -> bool:
    return any(
        entry.get("service") == "Ignition" and at(entry, "servicePublishingStrategy.type") == "NodePort"
        for entry in at(cluster, "spec.services") or []
    )


def _hosts_of(cluster: Object) -> Iterable[str]:
    """The names under which a cluster's machines look for the bootstrap server."""
    found = at(cluster, "status.ignitionEndpoint")
    if found:
        yield _host_of(str(found))
    for entry in at(cluster, "spec.services") or []:
        if entry.get("service") == "Ignition":
            strategy = entry.get("servicePublishingStrategy") or {}
            given = at(strategy, "nodePort.address") or at(strategy, "route.hostname")
            if given:
                yield str(given)


def _host_of(endpoint: str) -> str:
    if endpoint.startswith("["):
        return endpoint[1:].partition("]")[0]
    return endpoint.rpartition(":")[0] if endpoint.count(":") == 1 else endpoint
