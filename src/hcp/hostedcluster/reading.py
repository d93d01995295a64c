"""Reading a release takes as long as its registry likes; a pass waits some seconds and goes on without it.

What was begun goes on beside the passes, and the cluster is looked at again when it ends. Of one namespace only a few
are read at a time: a registry that sends a byte a minute keeps its own team waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hcp.errors import HcpError
from hcp.release import Release

PATIENCE = 30.0
PER_NAMESPACE = 4


class StillReading(HcpError):
    """Not an error: nothing is known yet."""


@dataclass(slots=True)
class _Begun:
    # What it is read with; another pull secret or mirror begins anew.
    mark: object
    task: asyncio.Task[Release]


class Readings:
    """The readings under way, by cluster and image."""

    def __init__(self, ended: Callable[[str], None]) -> None:
        """`ended` is told the key of a cluster whose reading took longer than its pass had time."""
        self._ended = ended
        self._begun: dict[tuple[str, str], _Begun] = {}
        self._slots: dict[str, asyncio.Semaphore] = {}

    async def wait(self, key: str, image: str, mark: object, read: Callable[[], Awaitable[Release]]) -> Release:
        """The release, or StillReading."""
        known = self._begun.get((key, image))
        if known is not None and known.mark is not mark:
            known.task.cancel()
            known = None
        if known is None:
            known = _Begun(mark, asyncio.create_task(self._one(key, read), name=f"read {image}"))
            self._begun[key, image] = known
        await asyncio.wait({known.task}, timeout=PATIENCE)
        if not known.task.done():
            known.task.add_done_callback(lambda _: self._ended(key))
            raise StillReading(f"The release image {image} is still being read from its registry")
        if self._begun.get((key, image)) is known:
            del self._begun[key, image]
        return known.task.result()

    async def _one(self, key: str, read: Callable[[], Awaitable[Release]]) -> Release:
        namespace = key.partition("/")[0]
        async with self._slots.setdefault(namespace, asyncio.Semaphore(PER_NAMESPACE)):
            return await read()

    def forget(self, key: str) -> None:
        """The cluster is gone."""
        for known in [k for k in self._begun if k[0] == key]:
            self._begun.pop(known).task.cancel()

    async def close(self) -> None:
        tasks = [known.task for known in self._begun.values()]
        self._begun.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
