"""Waiting for something that must come. The limit only ends a test that would hang; nothing is measured by it."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from hcp.errors import HcpError

T = TypeVar("T")
# What a check may meet on the way: an object or a field that is not there yet, a server that starts or is busy.
NOT_YET = (HcpError, AssertionError, LookupError, OSError, ValueError, StopIteration, subprocess.TimeoutExpired)


async def eventually(
    check: Callable[[], Awaitable[T | None]],
    what: str = "",
    between: Callable[[], Awaitable[Any]] | None = None,
    seconds: float = 300,
) -> T:
    """Ask until the answer is true, and give it; `between` is done after every no."""
    end = time.monotonic() + seconds
    last: object = None
    while time.monotonic() < end:
        try:
            if answer := await check():
                return answer
            last = answer
        except NOT_YET as error:
            last = error
        except RuntimeError as error:
            # A coroutine whose `next` found nothing; what it looked for may yet come.
            if not isinstance(error.__cause__, StopIteration):
                raise
            last = error
        if between is not None:
            await between()
        await asyncio.sleep(0.1)
    raise AssertionError(_never(what, last))


def eventually_sync(check: Callable[[], Any], what: str = "", seconds: float = 60) -> Any:
    """The same for tests that run commands."""
    end = time.monotonic() + seconds
    last: object = None
    while time.monotonic() < end:
        try:
            if answer := check():
                return answer
            last = answer
        except NOT_YET as error:
            last = error
        time.sleep(0.5)
    raise AssertionError(_never(what, last))


def _never(what: str, last: object) -> str:
    return f"{what or 'it'} never happened; last: {last!r}"
