"""The operator process: one leader works, the others stand by."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from hcp.api import names
from hcp.errors import HcpError
from hcp.kube import Client, ClusterConfig, buffers
from hcp.kube.errors import Forbidden
from hcp.operator import abilities, announce, capi, leases, sharing, support, wiring
from hcp.runtime import Controller, EventRecorder, Lease, serve_health
from hcp.runtime.context import Guests, Informers, OperatorContext
from hcp.runtime.requests import observe_request
from hcp.runtime.shards import LEASE, Shard

log = logging.getLogger(__name__)
CAPI_RETRY = 10.0


def inside_cluster() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ


def default_identity() -> str:
    """A pod is itself again after its container died, so it need not wait for its own lease to run out."""
    host = socket.gethostname()
    return host if inside_cluster() else f"{host}_{uuid.uuid4()}"


@dataclass(frozen=True)
class Options:
    """What the command line decides."""

    config: ClusterConfig
    namespace: str = names.OPERATOR_NAMESPACE
    health_port: int = 9000
    # Whether the process can reach Services of the management cluster.
    inside: bool = True
    own_image: str = ""
    internal_registries: frozenset[str] = frozenset()
    insecure_registries: frozenset[str] = frozenset()
    registry_overrides: Mapping[str, str] = field(default_factory=dict)
    hosted_quota: Mapping[str, str] = field(default_factory=dict)
    named_route_port: int = 0
    # How many parts the fleet is shared out in; 1: one process leads and has all of it.
    shards: int = 1
    support: support.Support = field(default_factory=support.Support)
    identity: str = field(default_factory=default_identity)


class Operator:
    """Holds what lives as long as the process."""

    def __init__(self, options: Options) -> None:
        self._options = options
        # Shards whose caches are being filled.
        self._filling: set[int] = set()
        self._sharing: sharing.Sharing | None = None

    @property
    def ready(self) -> bool:
        """A waiting process is ready too: it is ready to take over."""
        return not self._filling

    async def run(self) -> None:
        """Until cancelled, or until the lease is lost, which ends the process so that it starts anew."""
        options = self._options
        buffers.small()
        server = await serve_health(options.health_port, lambda: self.ready) if options.health_port >= 0 else None
        try:
            # Leases have a client of their own: to be renewed they must not wait in line behind a fleet's requests.
            async with self._client() as own:
                await self._namespace(own)
                sharing.SHARDS.set(options.shards)
                if options.shards == 1:
                    await self._all(own)
                else:
                    where = (own, options.namespace, options.identity, options.shards)
                    self._sharing = sharing.Sharing(*where, self._lead)
                    await self._sharing.run()
        finally:
            if server is not None:
                await server.close()

    async def _all(self, own: Client) -> None:
        """One process has everything, the others wait."""
        namespace, identity = self._options.namespace, self._options.identity

        async def lead() -> None:
            await leases.alone(own, namespace, identity)
            await self._lead(Shard())

        await Lease(
            own,
            LEASE,
            namespace,
            identity,
            duration=leases.LEASE_SECONDS,
            renew_every=leases.LEASE_RENEW,
            annotations={leases.ANNOTATION_SHARDS: None},
        ).run(lead)

    def _client(self) -> Client:
        # The API server's audit log then says which process it was.
        agent = f"hcp-operator/{self._options.identity}"
        return Client(self._options.config, user_agent=agent, observer=observe_request)

    async def _namespace(self, client: Client) -> None:
        """Only a developer's process comes before `hcp install`; the lease needs its namespace."""
        from hcp.kube.resources import NAMESPACES

        if not self._options.inside and await client.get_or_none(NAMESPACES, self._options.namespace) is None:
            await client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._options.namespace}})

    async def _lead(self, shard: Shard) -> None:
        """Work on the clusters of a shard, with clients and caches of its own, until told to stop."""
        self._filling.add(shard.number)
        try:
            async with self._client() as client:
                await self._lead_with(client, shard)
        finally:
            self._filling.discard(shard.number)
            sharing.HELD.remove(shard=str(shard.number))

    async def _lead_with(self, client: Client, shard: Shard) -> None:
        options = self._options
        ours = False
        if shard.first:
            # The kinds must be served before caches follow them; those of other shards are empty until then.
            ours = await self._definitions(client)
            await announce.tell_version(client, options.namespace)
        ctx = OperatorContext(
            client=client,
            informers=Informers(client, shard),
            guests=Guests(client, inside=options.inside),
            events=EventRecorder(client, "hypershift-operator"),
            shard=shard,
            images=options.support.images,
            secret_followers=tuple(capi.MANAGERS[component][0] for component in sorted(options.support.official)),
            own_image=options.own_image,
            namespace=options.namespace,
            inside=options.inside,
            internal_registries=options.internal_registries,
            insecure_registries=options.insecure_registries,
            registry_overrides=options.registry_overrides,
            hosted_quota=options.hosted_quota,
            named_route_port=options.named_route_port,
            same_node_first=await abilities.prefers_same_node(client),
        )
        controllers = wiring.everything(ctx, options.support, own_cluster_api=ours)
        await ctx.informers.start()
        self._filling.discard(shard.number)
        sharing.HELD.set(1, shard=str(shard.number))
        facts = {"shard": shard.number, "shards": shard.of}
        log.info("caches are filled", extra={**facts, "controllers": [c.name for c in controllers]})
        if self._sharing is not None:
            self._sharing.filled(shard)
        try:
            await self._work(controllers)
        finally:
            await ctx.events.flush()
            for closer in reversed(ctx.closers):
                await closer()
            await ctx.guests.close()
            await ctx.informers.stop()
            log.info("ended", extra={**facts, "identity": options.identity})

    async def _work(self, controllers: list[Controller]) -> None:
        """All controllers; when told to stop, each ends the passes it has under way."""
        running = [asyncio.create_task(c.run(), name=c.name) for c in controllers]
        try:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for controller in controllers:
                controller.stop()
            await asyncio.gather(*running, return_exceptions=True)

    async def _definitions(self, client: Client) -> bool:
        """Cluster API's kinds. An API server that is just busy must not end the process, which would only add load."""
        while True:
            try:
                return await capi.ensure_definitions(client, self._options.support)
            except Forbidden:
                raise
            except (HcpError, TimeoutError) as exc:
                log.warning("cannot apply Cluster API's definitions, trying again", extra={"error": str(exc)})
                await asyncio.sleep(CAPI_RETRY)
