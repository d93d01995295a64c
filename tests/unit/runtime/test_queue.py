"""The work queue."""

from __future__ import annotations

import asyncio

from hcp.runtime.queue import AGAIN, FRESH, WorkQueue


async def test_many_asks_for_a_key_are_one_pass() -> None:
    queue = WorkQueue()
    for _ in range(5):
        queue.add("a")
    assert len(queue) == 1
    assert await queue.get() == "a"
    assert len(queue) == 0


async def test_a_key_in_work_is_not_given_out_twice_and_comes_again_afterwards() -> None:
    queue = WorkQueue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("b")
    assert await queue.get() == "b"
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    assert not waiting.done()
    queue.done("a")
    assert await waiting == "a"


async def test_fresh_keys_go_before_resyncs_and_a_resync_can_become_fresh() -> None:
    queue = WorkQueue()
    for key in ("r1", "r2", "r3"):
        queue.add(key, AGAIN)
    queue.add("new", FRESH)
    queue.add("r3", FRESH)
    assert [await queue.get() for _ in range(4)] == ["new", "r3", "r1", "r2"]
    assert len(queue) == 0


async def test_a_fresh_ask_during_work_keeps_its_urgency() -> None:
    queue = WorkQueue()
    queue.add("a", AGAIN)
    await queue.get()
    queue.add("a", FRESH)
    queue.add("a", AGAIN)
    queue.add("b", AGAIN)
    queue.done("a")
    assert await queue.get() == "a"


async def test_pauses_double_up_to_a_limit_and_success_forgives() -> None:
    queue = WorkQueue(base_delay=1, max_delay=8)
    pauses = [queue.retry("a") for _ in range(6)]
    for pause, top in zip(pauses, (1, 2, 4, 8, 8, 8), strict=True):
        assert top / 2 <= pause <= top
    assert queue.failures("a") == 6
    queue.forgive("a")
    assert queue.retry("a") <= 1
    queue.close()


async def test_a_delayed_key_comes_and_the_earliest_ask_counts() -> None:
    queue = WorkQueue()
    queue.add_after("a", 3600)
    queue.add_after("a", 0)
    queue.add_after("a", 3600)
    assert await queue.get() == "a"


async def test_work_in_between_cancels_a_delayed_ask() -> None:
    queue = WorkQueue()
    queue.add_after("a", 0.01)
    queue.add("a")
    assert await queue.get() == "a"
    queue.done("a")
    await asyncio.sleep(0.03)
    assert len(queue) == 0


async def test_closing_wakes_all_workers() -> None:
    queue = WorkQueue()
    workers = [asyncio.ensure_future(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.close()
    assert await asyncio.gather(*workers) == [None, None, None]
    queue.add("late")
    assert len(queue) == 0


async def test_a_group_gets_its_share_and_others_pass_by() -> None:
    queue = WorkQueue(group=lambda key: key[0], per_group=2)
    for key in ("a1", "a2", "a3", "a4", "b1"):
        queue.add(key)
    assert [await queue.get() for _ in range(3)] == ["a1", "a2", "b1"]
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    assert not waiting.done()
    queue.done("a1")
    assert await waiting == "a3"
    queue.done("a2")
    assert await queue.get() == "a4"


async def test_a_key_that_waits_for_its_group_is_never_lost() -> None:
    queue = WorkQueue(group=lambda key: key[0], per_group=1)
    for key in ("a1", "a2", "a3"):
        queue.add(key, AGAIN)
    assert await queue.get() == "a1"
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a2", FRESH)
    queue.add("a3", FRESH)
    await asyncio.sleep(0)
    queue.done("a1")
    assert await waiting == "a2"
    queue.done("a2")
    assert await queue.get() == "a3"
    queue.done("a3")
    assert len(queue) == 0
