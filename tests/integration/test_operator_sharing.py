"""Shards by lease against a real API server: who comes and goes, and never two at the same shard."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from tests.support.eventually import eventually

from hcp.kube import Client
from hcp.kube import resources as r
from hcp.operator import leases
from hcp.operator.sharing import Sharing
from hcp.runtime import Lease
from hcp.runtime.shards import LEASE, Shard, holder_of, lease_name

LONG = 300


class Fleet:
    """Processes that share, and who is at which shard."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._running: dict[str, asyncio.Task[None]] = {}
        self.at: dict[str, set[int]] = {}
        self.moves: Counter[int] = Counter()
        self.clashes: list[str] = []
        self._counts: dict[str, int] = {}

    def begin(self, name: str, shards: int) -> None:
        held = self.at[name] = set()
        self._counts[name] = shards

        async def lead(shard: Shard) -> None:
            for other, theirs in self.at.items():
                same = shard.number in theirs if self._counts[other] == shards else theirs
                if other != name and same:
                    self.clashes.append(f"{name} began {shard} while {other} was at {theirs}")
            held.add(shard.number)
            self.moves[shard.number] += 1
            sharing.filled(shard)
            try:
                await asyncio.Event().wait()
            finally:
                # A pass that is under way takes a moment to end.
                await asyncio.sleep(0.1 + 0.2 * shard.number)
                held.discard(shard.number)

        where = (self._client, self._namespace, name, shards)
        sharing = Sharing(*where, lead, duration=30.0, renew_every=0.3)
        self._running[name] = asyncio.create_task(sharing.run())

    async def end(self, name: str) -> None:
        task = self._running.pop(name)
        task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(outcome, asyncio.CancelledError)

    async def sizes(self, *sizes: int) -> None:
        """Wait until they hold so many each."""

        async def there() -> bool:
            assert not any(task.done() for task in self._running.values())
            return sorted(len(self.at[name]) for name in self._running) == sorted(sizes)

        await eventually(there, f"they hold {sizes}")

    async def stop(self) -> None:
        await asyncio.gather(*(self.end(name) for name in list(self._running)))
        assert self.clashes == []


@pytest.fixture
async def fleet(client: Client, namespace: str) -> AsyncIterator[Fleet]:
    made = Fleet(client, namespace)
    yield made
    await made.stop()


async def test_shards_are_shared_out_anew_when_processes_come_and_go(
    fleet: Fleet, client: Client, namespace: str
) -> None:
    fleet.begin("a", 6)
    await fleet.sizes(6)
    fleet.begin("b", 6)
    await fleet.sizes(3, 3)
    fleet.begin("c", 6)
    await fleet.sizes(2, 2, 2)
    moved = fleet.moves.copy()
    await fleet.end("a")
    await fleet.sizes(3, 3)
    # Only what the one that left had was moved; its leases last half a minute, so they were given back.
    assert sum((fleet.moves - moved).values()) == 2
    await fleet.end("b")
    await fleet.sizes(6)
    await fleet.end("c")
    left = {one["metadata"]["name"]: holder_of(one) for one in await client.list(r.LEASES, namespace)}
    assert left == {lease_name(number): "" for number in range(6)}


async def test_the_shards_and_the_announcement_of_a_dead_process_are_taken(
    fleet: Fleet, client: Client, namespace: str
) -> None:
    notes = {leases.ANNOTATION_SHARDS: "2"}
    for name in (leases.member_name("dead"), LEASE):
        dead = Lease(client, name, namespace, "dead", duration=1, annotations=notes)
        await dead.acquire()
    fleet.begin("a", 2)
    await fleet.sizes(2)

    async def forgotten() -> bool:
        return await client.get_or_none(r.LEASES, leases.member_name("dead"), namespace) is None

    await eventually(forgotten, "its announcement is gone")


async def test_more_processes_than_shards_wait_and_step_in(fleet: Fleet) -> None:
    for name in "abc":
        fleet.begin(name, 2)
    await fleet.sizes(0, 1, 1)
    await fleet.end(next(name for name, held in fleet.at.items() if held))
    await fleet.sizes(1, 1)


async def test_another_number_of_shards_begins_only_after_the_last_of_the_first_has_ended(fleet: Fleet) -> None:
    """As when an administrator changes it: new pods come before the old ones have gone."""
    fleet.begin("old-1", 3)
    fleet.begin("old-2", 3)
    await fleet.sizes(1, 2)
    fleet.begin("new-1", 2)
    fleet.begin("new-2", 2)
    await fleet.end("old-1")
    await fleet.end("old-2")
    await fleet.sizes(1, 1)


async def test_an_operator_that_shares_nothing_and_those_that_share_wait_for_each_other(
    fleet: Fleet, client: Client, namespace: str
) -> None:
    leading: asyncio.Queue[int] = asyncio.Queue()

    async def lead() -> None:
        await leases.alone(client, namespace, "whole")
        leading.put_nowait(sum(len(held) for held in fleet.at.values()))
        await asyncio.Event().wait()

    def whole() -> asyncio.Task[None]:
        notes = {leases.ANNOTATION_SHARDS: None}
        made = Lease(client, LEASE, namespace, "whole", duration=30, renew_every=0.3, annotations=notes)
        return asyncio.create_task(made.run(lead))

    async with asyncio.timeout(LONG):
        first = whole()
        assert await leading.get() == 0
        fleet.begin("a", 3)
        await eventually(lambda: client.get(r.LEASES, leases.member_name("a"), namespace), "it has announced itself")
        assert fleet.at["a"] == set()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await fleet.sizes(3)
        second = whole()
        # The first shard, whose lease it is, ends sooner than the others.
        await fleet.end("a")
        assert await leading.get() == 0
        found = await client.get(r.LEASES, LEASE, namespace)
        assert (holder_of(found), leases.count_of(found)) == ("whole", 1)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
