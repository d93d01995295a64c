"""Showing how far something is: one living line on a terminal, a line per change everywhere else."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from hcp.cli.engine.terminal import alarm, note
from hcp.errors import HcpError

if TYPE_CHECKING:  # commands that only show progress reach no cluster
    from hcp.cli.shared.watched import Watched
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

    def alarm(self, text: str) -> None:
        """A line that stays above the living one."""
        if self.live:
            sys.stderr.write("\r\x1b[K")
        alarm(text)

    def close(self) -> None:
        """The living line stays as an ordinary one. Closing twice is harmless."""
        if self.live and self._last:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            note(self._last)
            self._last = ""


class Steady:
    """Lets a text through once it has stayed the same for a while: on the way up much looks wrong for a moment."""

    def __init__(self, seconds: float = 5.0) -> None:
        self._seconds = seconds
        self._text = self._told = ""
        self._since = 0.0

    @property
    def pending(self) -> bool:
        return self._text not in ("", self._told)

    def news(self, text: str) -> str:
        now = time.monotonic()
        if text != self._text:
            self._text, self._since = text, now
        if not self.pending or now - self._since < self._seconds:
            return ""
        self._told = self._text
        return self._text


async def wait_until(
    client: Client,
    watched: Sequence[Watched],
    judge: Callable[[], tuple[bool, str]],
    *,
    late: str,
    seconds: float,
    hint: str,
    again: str,
    trouble: Callable[[], str] = lambda: "",
) -> None:
    """Follows `watched` and asks `judge` after every change until it says done. `seconds` of 0 means for ever.

    `late` is the sentence for when the time is up, such as "node pool a/b is not ready"; `again` says how to go on
    after Ctrl-C. A server that is away is waited out. `trouble` names what waiting will not heal; it is told once.
    """
    progress = Progress()
    changed = asyncio.Event()
    tasks = [asyncio.ensure_future(one.follow(client, changed.set)) for one in watched]
    for task in tasks:
        task.add_done_callback(lambda _: changed.set())
    seen = text = "nothing known yet"
    steady = Steady()
    try:
        async with asyncio.timeout(seconds or None):
            done = False
            while not done:
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), TICK if progress.live or steady.pending else None)
                changed.clear()
                for task in tasks:
                    if task.done():
                        task.result()
                away = next((one.trouble for one in watched if one.trouble is not None), None)
                if away is None:
                    if not all(one.known for one in watched):
                        continue
                    done, seen = judge()
                    if wrong := steady.news("" if done else trouble()):
                        progress.alarm(wrong)
                text = f"no answer from the management cluster ({away}); last seen: {seen}" if away else seen
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
