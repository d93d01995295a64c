"""What every controller of the operator is given: clients, shared caches, events, and the operator's own images.

It lives this low so that reconcilers of any layer can be wired by one process without importing that process.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hcp.api.names import LABEL_CONTROL_PLANE_NAMESPACE
from hcp.kube import Client, ClientPool, Resource, untrusted_kubeconfig
from hcp.kube.resources import HOSTEDCLUSTERS, NAMESPACES, SECRETS
from hcp.runtime.informer import Informer
from hcp.runtime.shards import Shard, claiming, numbered

if TYPE_CHECKING:
    from hcp.runtime.events import EventRecorder

# The kubeconfig Secrets in a hosted namespace (key `kubeconfig`): for callers inside the management cluster, and
# for callers outside.
SERVICE_NETWORK_KUBECONFIG = "service-network-admin-kubeconfig"
PUBLISHED_KUBECONFIG = "hcco-published-kubeconfig"


class Informers:
    """One shared informer per kind, namespace and selector; the second asker gets the first one's cache.

    Where clusters are shared between processes, each keeps only what is about its own.
    """

    def __init__(self, client: Client, shard: Shard | None = None) -> None:
        self._client = client
        self._shard = shard or Shard()
        self._informers: dict[tuple[Resource, str | None, str | None], Informer] = {}
        self._whole: dict[Resource, Informer] = {}

    def get(
        self,
        resource: Resource,
        ns: str | None = None,
        labels: str | None = None,
        transform: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> Informer:
        """The informer, not necessarily started: add indexes and listeners first, then `start` it.

        Who asks first says by `transform` what is kept of each object.
        """
        key = (resource, ns, labels)
        if key not in self._informers:
            keep = self._shard.filter(ns) if resource.namespaced or resource == NAMESPACES else None
            self._informers[key] = Informer(self._client, resource, ns, labels, transform=transform, keep=keep)
        return self._informers[key]

    def all_clusters(self) -> Informer:
        """HostedClusters, also those that other processes work on; then only what is of interest to more than one."""
        return self._all(HOSTEDCLUSTERS, None, claiming)

    def all_namespaces(self) -> Informer:
        """The hosted namespaces of all clusters, in the same way."""
        return self._all(NAMESPACES, LABEL_CONTROL_PLANE_NAMESPACE, numbered)

    def _all(
        self, resource: Resource, labels: str | None, transform: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> Informer:
        if self._shard.everything:
            return self.get(resource, labels=labels)
        if resource not in self._whole:
            self._whole[resource] = Informer(self._client, resource, labels=labels, transform=transform)
        return self._whole[resource]

    async def start(self) -> None:
        """Start all that were asked for and wait until their caches are filled. Safe to call again."""
        informers = [*self._informers.values(), *self._whole.values()]
        await asyncio.gather(*(i.start() for i in informers))
        await asyncio.gather(*(i.wait_synced() for i in informers))

    async def stop(self) -> None:
        await asyncio.gather(*(i.stop() for i in (*self._informers.values(), *self._whole.values())))


class Guests:
    """Clients for the API servers of hosted clusters, by hosted namespace, renewed when their Secret changes."""

    def __init__(self, client: Client, *, inside: bool, pool: ClientPool | None = None) -> None:
        self._client = client
        # Every client that is there for a hosted cluster: also those for its infra cluster.
        self.pool = ClientPool() if pool is None else pool
        # Which kubeconfig Secret of the hosted namespace is used.
        self.secret_name = SERVICE_NETWORK_KUBECONFIG if inside else PUBLISHED_KUBECONFIG

    async def get(self, hosted_ns: str, secret: Mapping[str, Any] | None = None) -> Client | None:
        """The client for this hosted namespace; None while its kubeconfig does not exist yet.

        Give the Secret when you have it from a cache; otherwise it is read.
        """
        return await self._get(hosted_ns, self.secret_name, secret)

    async def published(self, hosted_ns: str, secret: Mapping[str, Any] | None = None) -> Client | None:
        """The same as users reach it, at its published address."""
        return await self._get(hosted_ns, PUBLISHED_KUBECONFIG, secret)

    async def _get(self, hosted_ns: str, name: str, secret: Mapping[str, Any] | None) -> Client | None:
        if secret is None:
            secret = await self._client.get_or_none(SECRETS, name, hosted_ns)
        if secret is None:
            self.pool.drop(hosted_ns, name)
            return None
        data = str((secret.get("data") or {}).get("kubeconfig", ""))
        where = f"The kubeconfig of the hosted cluster in {hosted_ns}"
        return self.pool.get(hosted_ns, name, data, lambda: untrusted_kubeconfig.load(base64.b64decode(data), where))

    def forget(self, hosted_ns: str) -> None:
        """Close what is held for a hosted cluster that is gone."""
        self.pool.drop(hosted_ns)

    async def close(self) -> None:
        await self.pool.close()


@dataclass
class OperatorContext:
    """Given to `async def setup(ctx) -> list[Controller]` of each reconciler."""

    client: Client
    informers: Informers
    guests: Guests
    events: EventRecorder
    # Which hosted clusters this is about.
    shard: Shard = field(default_factory=Shard)
    # Support images by name (haproxy, cluster-api, …), as /opt/hcp/images.json has them.
    images: Mapping[str, str] = field(default_factory=dict)
    # Accounts of managers that follow Secrets in hosted namespaces: those of official builds.
    secret_followers: tuple[str, ...] = ()
    own_image: str = ""
    namespace: str = "hypershift"
    # Whether the process runs in the management cluster and so reaches its pod and service networks.
    inside: bool = True
    # Registries that the administrator declared: inside the management cluster, and without TLS.
    internal_registries: frozenset[str] = frozenset()
    insecure_registries: frozenset[str] = frozenset()
    # Source → mirror, where the administrator has the images of releases.
    registry_overrides: Mapping[str, str] = field(default_factory=dict)
    # Where our router takes connections whose host is named in front of them; 0: the router is not ours.
    named_route_port: int = 0
    # Whether a Service can prefer endpoints on the caller's node.
    same_node_first: bool = False
    # How many load balancers, claims and pods a hosted cluster may have, where it is not as usual.
    hosted_quota: Mapping[str, str] = field(default_factory=dict)
    # Called in order when the process stops.
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
