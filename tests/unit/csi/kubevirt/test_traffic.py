"""One disk that comes alone may be promised early; then nothing else begins in its machine until it is there."""

from __future__ import annotations

import asyncio

from hcp.csi.errors import Unavailable
from hcp.csi.kubevirt.traffic import Traffic


async def passed(traffic: Traffic, node: str, handle: str) -> None:
    async with traffic.moving(node, handle):
        pass


async def turns() -> None:
    """Everything that can go on has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_disk_is_alone_until_another_one_moves_in_the_same_machine() -> None:
    traffic = Traffic()
    assert traffic.alone("node", "a")
    async with traffic.moving("node", "a"):
        assert traffic.alone("node", "a")
        async with traffic.moving("other", "b"):
            assert traffic.alone("node", "a")
        async with traffic.moving("node", "b"):
            assert not traffic.alone("node", "a") and not traffic.alone("node", "b")
        assert traffic.alone("node", "a")
    assert traffic.alone("node", "b")


async def test_what_moves_twice_is_alone_only_when_both_have_ended() -> None:
    traffic = Traffic()
    async with traffic.moving("node", "a"):
        async with traffic.moving("node", "a"):
            pass
        assert not traffic.alone("node", "b")
    assert traffic.alone("node", "b")


async def test_nothing_begins_in_a_machine_before_a_promise_is_kept() -> None:
    traffic, there = Traffic(), asyncio.Event()

    async def until_there() -> None:
        await there.wait()

    traffic.promise("node", until_there())
    waiting = asyncio.create_task(passed(traffic, "node", "b"))
    await passed(traffic, "other", "c")
    await turns()
    assert not waiting.done()
    there.set()
    await waiting
    await passed(traffic, "node", "b")


async def test_a_promise_that_is_given_up_holds_up_nobody() -> None:
    traffic = Traffic()

    async def late() -> None:
        raise Unavailable("The volume a is not in machine node yet")

    traffic.promise("node", late())
    await passed(traffic, "node", "b")


async def test_what_fails_on_its_way_leaves_the_way_free() -> None:
    traffic = Traffic()
    try:
        async with traffic.moving("node", "a"):
            raise Unavailable("The machine node does not take volumes")
    except Unavailable:
        pass
    assert traffic.alone("node", "b")
