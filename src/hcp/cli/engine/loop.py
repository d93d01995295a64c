"""Running a command's coroutine so that Ctrl-C ends it at once, whatever it is waiting for."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


def run_coroutine(work: Coroutine[Any, Any, int | None]) -> int | None:
    """Like asyncio.run: the first SIGINT cancels the work, a second one interrupts even its clean-up.

    SIGTERM does the same. It is the only way to end a background job of a shell in good order: those are started with
    SIGINT ignored, and stay deaf to it, so that Ctrl-C for another command does not end them.
    """
    told = False

    async def endable() -> int | None:
        task = asyncio.current_task()
        assert task is not None

        def end() -> None:
            nonlocal told
            told = True
            task.cancel()

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
        return await work

    try:
        return asyncio.run(endable())
    except asyncio.CancelledError:
        if told:
            raise KeyboardInterrupt from None
        raise
