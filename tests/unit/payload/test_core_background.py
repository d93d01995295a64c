"""Building beside an event loop: who cancels it is heard, and no compiler is left behind."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest
from tests.support.unit.workshop import Workshop

from hcp.errors import HcpError
from hcp.payload import BuildContext
from hcp.payload.background import make


async def test_what_is_made_is_given_and_the_loop_goes_on(workshop: Workshop) -> None:
    loop_was_free = threading.Event()

    def build(ctx: BuildContext) -> None:
        loop_was_free.wait()

    workshop.add("tool", during=build)
    making = asyncio.create_task(make(workshop.engine(), ["tool"]))
    asyncio.get_running_loop().call_soon(loop_was_free.set)
    assert (await making)["tool"].is_dir()


async def test_an_error_is_raised_where_it_is_awaited(workshop: Workshop) -> None:
    def build(ctx: BuildContext) -> None:
        ctx.run(["sh", "-c", "exit 3"])

    workshop.add("tool", during=build)
    with pytest.raises(HcpError, match="tool"):
        await make(workshop.engine(), ["tool"])


async def test_cancelling_ends_the_program_that_builds(workshop: Workshop, tmp_path: Path) -> None:
    told = tmp_path / "pid"

    def build(ctx: BuildContext) -> None:
        ctx.run(["sh", "-c", 'echo $$ > "$0.part" && mv "$0.part" "$0" && exec sleep 600', told])

    workshop.add("tool", during=build)
    making = asyncio.create_task(make(workshop.engine(), ["tool"]))
    while not told.exists() and not making.done():
        await asyncio.sleep(0.01)
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)
