"""One piece of work per volume at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hcp.csi.errors import Aborted

T = TypeVar("T")


class Exclusive:
    """Whoever asks for a volume that is being worked on is told to ask again, as the protocol wants it.

    A caller that gives up does not stop the work half done: it goes on, and the volume stays taken until it ends.
    """

    def __init__(self) -> None:
        self._busy: dict[str, asyncio.Task[Any]] = {}

    async def run(self, key: str, work: Coroutine[Any, Any, T]) -> T:
        if key in self._busy:
            work.close()
            raise Aborted(f"{key} is being worked on already", hint="Ask again.")
        task = asyncio.ensure_future(work)
        self._busy[key] = task
        task.add_done_callback(lambda _done: self._busy.pop(key, None))
        return await asyncio.shield(task)

    async def settled(self) -> None:
        """Waits for what is going on, so that a process that ends leaves nothing half done."""
        await asyncio.gather(*self._busy.values(), return_exceptions=True)
