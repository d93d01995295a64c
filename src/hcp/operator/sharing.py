"""Clusters shared between several operator processes: shards by lease.

All clusters are dealt out to a number of shards that never changes while the operator runs. For each shard there is a
Lease, and its holder alone works on that shard's clusters. Processes announce themselves by a Lease each, so all see
the same members and compute the same fair plan; nobody is told anything. A shard changes hands only through its Lease:
its holder gives it back after the last pass over its clusters has ended, or it runs out because the holder is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable

from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.resources import LEASES
from hcp.operator.leases import ANNOTATION_SHARDS, LEASE_RENEW, LEASE_SECONDS, Leases, member_name
from hcp.runtime import Lease, metrics
from hcp.runtime.shards import Shard, lease_name

log = logging.getLogger(__name__)
HELD = metrics.Gauge("hcp_shard_held", "Shards of the fleet that this process works on: 1.", ["shard"])
SHARDS = metrics.Gauge("hcp_shards", "Shards that all clusters are dealt out to.")


class Sharing:
    """Holds a fair part of the shards, and has `lead` work on each of them."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        identity: str,
        shards: int,
        lead: Callable[[Shard], Awaitable[None]],
        *,
        duration: float = LEASE_SECONDS,
        renew_every: float = LEASE_RENEW,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._me = identity
        self._count = shards
        self._lead = lead
        self._duration, self._renew_every = duration, renew_every
        self._leases = Leases(client, namespace, identity, shards)
        self._running: dict[int, asyncio.Task[None]] = {}
        # Shards whose caches are not filled yet: one after the other, or a restart would need memory for all at once.
        self._filling: set[int] = set()
        self._failed = 0

    async def run(self) -> None:
        """Until cancelled, or until a Lease is lost, which ends the process so that it starts anew."""
        await self._lease(member_name(self._me), temporary=True).run(self._share)

    def filled(self, shard: Shard) -> None:
        """The caches of this shard are filled: the next one may be begun."""
        self._filling.discard(shard.number)
        self._leases.ring()

    def _lease(self, name: str, *, temporary: bool = False) -> Lease:
        return Lease(
            self._client,
            name,
            self._namespace,
            self._me,
            duration=self._duration,
            renew_every=self._renew_every,
            annotations={ANNOTATION_SHARDS: str(self._count)},
            temporary=temporary,
        )

    async def _share(self) -> None:
        try:
            await self._leases.start()
            with self._leases.bell() as bell:
                while True:
                    await self._turn()
                    await self._leases.rung(bell, self._failed)
        finally:
            for task in self._running.values():
                if not task.cancelling():
                    task.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)
            await self._leases.stop()

    async def _turn(self) -> None:
        """Once through everything that may have to be done now."""
        for number in [number for number, task in self._running.items() if task.done()]:
            task = self._running.pop(number)
            self._filling.discard(number)
            if not task.cancelled():
                task.result()
        view = self._leases.view()
        mine = view.mine()
        for number in self._running.keys() - mine:
            if not self._running[number].cancelling():
                log.info("giving a shard away", extra={"shard": number, "shards": self._count})
                self._running[number].cancel()
        for number in sorted(mine - self._running.keys()):
            if not self._filling and view.free(number):
                await self._take(number)
        if 0 in self._running:
            await self._clear()

    async def _take(self, number: int) -> None:
        lease = self._lease(lease_name(number))
        try:
            taken = await lease.take(self._leases.seen.leases.get(lease.name))
            self._failed = 0
        except HcpError as exc:
            self._failed += 1
            log.warning("cannot take a shard", extra={"shard": number, "error": str(exc)})
            return
        if taken:
            self._filling.add(number)
            shard = Shard(number, self._count)
            self._running[number] = asyncio.create_task(lease.hold(lambda: self._work(shard)), name=f"shard {number}")
            self._running[number].add_done_callback(lambda _: self._leases.ring())

    async def _work(self, shard: Shard) -> None:
        await self._leases.until_alone()
        await self._lead(shard)

    async def _clear(self) -> None:
        """Announcements of processes that did not end in order are taken away by the one that holds shard 0.

        At once: to whoever comes now, and cannot know how old they are, they would be members for a while.
        """
        for name in self._leases.seen.left_behind(self._me, time.monotonic()):
            meta = self._leases.seen.leases[name]["metadata"]
            self._leases.seen.forget(name)
            with contextlib.suppress(HcpError):
                await self._client.delete(LEASES, name, self._namespace, version=meta["resourceVersion"])
