"""Running a command's coroutine so that Ctrl-C or a signal ends it at once, whatever it is waiting for."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


def run_coroutine(work: Coroutine[Any, Any, int | None]) -> int | None:
    """Like asyncio.run: the first SIGINT cancels the work, a second one interrupts even its clean-up."""
    return asyncio.run(work)


async def until_stopped(work: Coroutine[Any, Any, None]) -> int:
    """Run a server until it ends or the process is told to stop, which is no failure."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return 0
    return 0
