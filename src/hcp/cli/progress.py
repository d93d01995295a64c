"""Showing how far something is: one living line on a terminal, a line per change everywhere else."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Awaitable, Callable

from hcp.cli.terminal import note
from hcp.errors import HcpError
from hcp.kube.errors import ServerFailure, TooManyRequests, Unreachable

TIMED_OUT = 3
PERIOD = 1.0


class Progress:
    """Prints what is being waited for; `show` is called often, lines are printed only when they differ."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._last = ""
        self._started = time.monotonic()

    def show(self, text: str) -> None:
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            line = f"[{int(time.monotonic() - self._started):4}s] {text}"
            sys.stderr.write("\r\x1b[K" + line[:width])
            sys.stderr.flush()
        elif text != self._last:
            note(text)
        self._last = text

    def close(self) -> None:
        if self._live and self._last:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            note(self._last)


async def wait_until(
    look: Callable[[], Awaitable[tuple[bool, str]]], *, late: str, seconds: float, hint: str, period: float = PERIOD
) -> None:
    """Calls `look` until it says done. `seconds` of 0 means for ever. An unreachable server is waited out.

    `late` is the sentence for when the time is up, such as "node pool a/b is not ready".
    """
    progress = Progress()
    text = "nothing known yet"
    try:
        async with asyncio.timeout(seconds or None):
            while True:
                try:
                    done, text = await look()
                except (Unreachable, ServerFailure, TooManyRequests) as error:
                    done, text = False, f"no answer from the management cluster ({error})"
                progress.show(text)
                if done:
                    return
                await asyncio.sleep(period)
    except TimeoutError:
        raise HcpError(f"{late} after {seconds:g} s", cause=text, hint=hint, exit_code=TIMED_OUT) from None
    finally:
        progress.close()
