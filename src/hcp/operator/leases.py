"""The Leases of all operator processes of a management cluster, and what they say about who works on what.

Shard 0 has the Lease of an operator that shares nothing. Who counts another number of shards deals clusters out
differently, so it never works beside these: whoever took a Lease looks whether anybody holds one with another number,
and waits until nobody does. Of two that do so at the same time at least one sees the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hcp.api import names
from hcp.api.paths import annotations_of
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.resources import LEASES
from hcp.kube.transport import backoff
from hcp.runtime import Informer
from hcp.runtime.shards import fair, holder_of, shard_number
from hcp.runtime.store import version_of

log = logging.getLogger(__name__)
Object = dict[str, Any]

MEMBER = "hypershift-operator-member-"
ANNOTATION_SHARDS = f"{names.GROUP}/operator-shards"
# Another process has begun to work half a minute after one died, filling its caches included. A restarted
# container keeps its identity, and an orderly end hands over at once: neither waits.
LEASE_SECONDS, LEASE_RENEW = 24.0, 4.0


def member_name(identity: str) -> str:
    return MEMBER + re.sub(r"[^a-z0-9]+", "-", identity.lower()).strip("-")


def is_ours(name: str) -> bool:
    return name.startswith(MEMBER) or shard_number(name) is not None


def count_of(lease: Object) -> int:
    """By how many shards its holder deals out; who shares nothing says nothing."""
    text = annotations_of(lease).get(ANNOTATION_SHARDS, "1")
    return int(text) if text.isdigit() else 1


@dataclass(frozen=True)
class View:
    """What one process sees at one moment, by its own clock: those of two machines differ."""

    count: int
    me: str
    # Those that work with the same number of shards, this one among them.
    members: tuple[str, ...]
    # Shard → who has it and still may.
    holders: dict[int, str]
    # Who has a shard of another number.
    strangers: tuple[str, ...] = ()
    # Whether shard 0 is among those: then nobody takes anything.
    stranger_leads: bool = False

    def plan(self) -> dict[int, str]:
        return {} if self.stranger_leads else fair(self.count, self.members, self.holders)

    def mine(self) -> set[int]:
        return {number for number, who in self.plan().items() if who == self.me}

    def free(self, number: int) -> bool:
        return self.holders.get(number, self.me) == self.me


@dataclass
class Seen:
    """Every Lease as last seen, and since when it is as it is."""

    leases: dict[str, Object] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)

    def take_in(self, lease: Object, now: float) -> None:
        name = lease["metadata"]["name"]
        if not is_ours(name):
            return
        known = self.leases.get(name)
        # A list and a watch may cross each other.
        if known is None or version_of(lease) > version_of(known):
            self.leases[name], self.since[name] = lease, now

    def forget(self, name: str) -> None:
        self.leases.pop(name, None)
        self.since.pop(name, None)

    def ends(self, name: str) -> float:
        """When its holder must have renewed it."""
        spec = self.leases[name].get("spec") or {}
        return self.since[name] + float(spec.get("leaseDurationSeconds") or LEASE_SECONDS)

    def view(self, count: int, me: str, now: float) -> View:
        members, holders, strangers, leads = {me}, {}, [], False
        for name, lease in self.leases.items():
            holder, number = holder_of(lease), shard_number(name)
            if not holder or (self.ends(name) <= now and holder != me):
                continue
            if number is None:
                members |= {holder} if count_of(lease) == count else set()
            elif count_of(lease) == count:
                holders[number] = holder
            elif holder != me:
                strangers.append(holder)
                leads = leads or number == 0
        return View(count, me, tuple(sorted(members)), holders, tuple(sorted(set(strangers))), leads)

    def next_end(self, me: str, now: float) -> float | None:
        """Seconds until somebody's Lease runs out, if it is not renewed."""
        ends = (self.ends(name) for name, one in self.leases.items() if holder_of(one) not in ("", me))
        return min((end - now for end in ends if end > now), default=None)

    def left_behind(self, me: str, now: float) -> list[str]:
        """Announcements of processes that are gone."""
        there = [n for n, lease in self.leases.items() if n.startswith(MEMBER) and holder_of(lease) != me]
        return [name for name in there if self.ends(name) <= now]


class Leases:
    """Follows them, and wakes whoever waits for a change."""

    def __init__(self, client: Client, namespace: str, me: str, count: int) -> None:
        self._client = client
        self._namespace = namespace
        self._me = me
        self._count = count
        self.seen = Seen()
        self._informer = Informer(client, LEASES, namespace)
        self._informer.add_listener(self._heard)
        self._bells: list[asyncio.Event] = []

    async def start(self) -> None:
        await self._informer.start()
        await self._informer.wait_synced()

    async def stop(self) -> None:
        await self._informer.stop()

    def view(self) -> View:
        return self.seen.view(self._count, self._me, time.monotonic())

    def ring(self) -> None:
        for bell in self._bells:
            bell.set()

    @contextlib.contextmanager
    def bell(self) -> Iterator[asyncio.Event]:
        """Set by every change from now on."""
        event = asyncio.Event()
        self._bells.append(event)
        try:
            yield event
        finally:
            self._bells.remove(event)

    async def rung(self, bell: asyncio.Event, failed: int = 0) -> None:
        """A change, or somebody's Lease has run out; after failures not much later than that."""
        ends = self.seen.next_end(self._me, time.monotonic())
        waits = [one for one in (ends, backoff(failed, base=0.5) if failed else None) if one is not None]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(waits, default=None)):
                await bell.wait()
        bell.clear()

    async def strangers(self) -> tuple[str, ...]:
        """Asked, not remembered: what was there before our own Lease was taken may not have been heard of."""
        listed = await self._client.list(LEASES, self._namespace)
        now = time.monotonic()
        for lease in listed:
            if shard_number(lease["metadata"]["name"]) is not None:
                self.seen.take_in(lease, now)
        return self.view().strangers

    async def until_alone(self) -> None:
        """Until nobody holds a shard of another number. Whoever takes one from now on sees ours, and waits."""
        failed = 0
        with self.bell() as bell:
            while True:
                try:
                    await self.strangers()
                    break
                except HcpError as exc:
                    failed += 1
                    log.warning("cannot see who else works here", extra={"error": str(exc)})
                await self.rung(bell, failed)
            told: tuple[str, ...] = ()
            while them := self.view().strangers:
                if them != told:
                    log.info("others share by another number of shards, they end first", extra={"them": them})
                told = them
                await self.rung(bell)

    def _heard(self, old: Object | None, new: Object | None) -> None:
        name = (new or old or {})["metadata"]["name"]
        if new is None:
            self.seen.forget(name)
        else:
            self.seen.take_in(new, time.monotonic())
        if is_ours(name):
            self.ring()


async def alone(client: Client, namespace: str, me: str) -> None:
    """For an operator that shares nothing, once it holds its Lease: those that shared before have ended."""
    leases = Leases(client, namespace, me, 1)
    if not await leases.strangers():
        return
    await leases.start()
    try:
        await leases.until_alone()
    finally:
        await leases.stop()
