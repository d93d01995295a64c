"""Showing how far something is: one living line on a terminal, a line per change everywhere else."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from hcp.cli.sight import Sight
from hcp.cli.terminal import note
from hcp.errors import HcpError
from hcp.kube import Client

TIMED_OUT = 3
# How often the seconds of the living line move; nothing is asked for then.
TICK = 1.0


class Progress:
    """Prints what is being waited for; `show` is called often, lines are printed only when they differ."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self._last = ""
        self._started = time.monotonic()

    def show(self, text: str) -> None:
        text = "; ".join(filter(None, map(str.strip, text.splitlines())))  # a living line is one line
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            line = f"[{int(time.monotonic() - self._started):4}s] {text}"
            sys.stderr.write("\r\x1b[K" + line[:width])
            sys.stderr.flush()
        elif text != self._last:
            note(text)
        self._last = text

    def close(self) -> None:
        """The living line stays as an ordinary one. Closing twice is harmless."""
        if self.live and self._last:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            note(self._last)
            self._last = ""


async def wait_until(
    client: Client,
    sights: Sequence[Sight],
    judge: Callable[[], tuple[bool, str]],
    *,
    late: str,
    seconds: float,
    hint: str,
    again: str,
) -> None:
    """Follows `sights` and asks `judge` after every change until it says done. `seconds` of 0 means for ever.

    `late` is the sentence for when the time is up, such as "node pool a/b is not ready"; `again` says how to go on
    after Ctrl-C. A server that is away is waited out.
    """
    progress = Progress()
    changed = asyncio.Event()
    tasks = [asyncio.ensure_future(sight.follow(client, changed.set)) for sight in sights]
    for task in tasks:
        task.add_done_callback(lambda _: changed.set())
    seen = text = "nothing known yet"
    try:
        async with asyncio.timeout(seconds or None):
            done = False
            while not done:
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), TICK if progress.live else None)
                changed.clear()
                for task in tasks:
                    if task.done():
                        task.result()
                trouble = next((sight.trouble for sight in sights if sight.trouble is not None), None)
                if trouble is None:
                    if not all(sight.known for sight in sights):
                        continue
                    done, seen = judge()
                text = f"no answer from the management cluster ({trouble}); last seen: {seen}" if trouble else seen
                progress.show(text)
    except TimeoutError:
        raise HcpError(f"{late} after {seconds:g} s", cause=text, hint=hint, exit_code=TIMED_OUT) from None
    except asyncio.CancelledError:
        progress.close()
        note(f"Stopped waiting: {late} yet")
        note(f"Hint: {again}")
        raise
    finally:
        progress.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
