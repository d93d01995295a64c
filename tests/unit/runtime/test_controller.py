"""The controller loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hcp.errors import HcpError
from hcp.runtime import Controller, Result
from hcp.runtime.controller import RESULTS


async def test_keys_run_in_parallel_and_one_key_never_twice_at_once() -> None:
    running: set[str] = set()
    most = 0
    passes: list[str] = []

    async def reconcile(key: str) -> None:
        nonlocal most
        assert key not in running
        running.add(key)
        most = max(most, len(running))
        await asyncio.sleep(0.001)
        running.discard(key)
        passes.append(key)
        if len(passes) < 12:
            controller.enqueue("a")
        elif not len(controller.queue):
            controller.stop()

    controller = Controller("parallel", reconcile, workers=3)
    for key in "abcdef":
        controller.enqueue(key)
    async with asyncio.timeout(30):
        await controller.run()
    assert most == 3
    assert {"a", "b", "c", "d", "e", "f"} <= set(passes)


async def test_a_failed_pass_is_tried_again_and_a_result_asks_for_later(caplog: pytest.LogCaptureFixture) -> None:
    tries = 0

    async def reconcile(key: str) -> Result | None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise HcpError("It is broken", hint="Mend it.")
        if tries == 2:
            raise ValueError("a bug")
        if tries == 3:
            return Result(requeue_after=0.0)
        controller.stop()
        return None

    controller = Controller("failing", reconcile, workers=1, base_delay=0.001)
    controller.enqueue("a")
    async with asyncio.timeout(30):
        await controller.run()
    assert tries == 4
    assert RESULTS.value(controller="failing", result="error") == 2
    assert RESULTS.value(controller="failing", result="success") == 2
    first, second = [r for r in caplog.records if r.message == "pass failed"]
    facts: dict[str, Any] = vars(first)
    assert (facts["key"], facts["error"], facts["hint"]) == ("a", "It is broken", "Mend it.")
    assert first.exc_info is None
    assert second.exc_info is not None


async def test_stopping_lets_the_pass_under_way_finish() -> None:
    finished = asyncio.Event()
    started = asyncio.Event()

    async def reconcile(_: str) -> None:
        started.set()
        await asyncio.sleep(0.01)
        finished.set()

    controller = Controller("stopping", reconcile)
    controller.enqueue("a")
    run = asyncio.create_task(controller.run())
    await started.wait()
    controller.stop()
    await run
    assert finished.is_set()


async def test_cancelling_also_ends_a_pass_that_hangs() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def reconcile(_: str) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    controller = Controller("hanging", reconcile, grace=0.01)
    controller.enqueue("a")
    run = asyncio.create_task(controller.run())
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert cancelled.is_set()
