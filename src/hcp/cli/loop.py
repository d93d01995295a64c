"""Running a command's coroutine so that Ctrl-C ends it at once, whatever it is waiting for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


def run_coroutine(work: Coroutine[Any, Any, int | None]) -> int | None:
    """Like asyncio.run: the first SIGINT cancels the work, a second one interrupts even its clean-up."""
    return asyncio.run(work)
