"""What is on its way into machines and out of them.

A kubelet asks after 0.5, 1, 2, 4 and 8 seconds whether a volume is attached: what it is told a moment too late costs
seconds. But until KubeVirt calls a disk ready, another one that comes or goes in the same machine has it taken out and
put back, and a guest that had mounted it loses it for good. So a disk that comes alone may be promised early, and then
nothing else begins in its machine until it is there.

This is what one process knows. Another one that takes over has first to start, which takes longer than the last steps
of a disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from hcp.errors import HcpError

log = logging.getLogger(__name__)


class Traffic:
    def __init__(self) -> None:
        self._moving: dict[str, Counter[str]] = {}
        self._promised: dict[str, set[asyncio.Task[None]]] = {}

    @contextlib.asynccontextmanager
    async def moving(self, node: str, handle: str) -> AsyncIterator[None]:
        """Begins when every disk that was promised is in its machine."""
        while promised := self._promised.get(node):
            await asyncio.wait(tuple(promised))
        here = self._moving.setdefault(node, Counter())
        here[handle] += 1
        try:
            yield
        finally:
            here[handle] -= 1
            if not +here:
                self._moving.pop(node, None)

    def alone(self, node: str, handle: str) -> bool:
        """Whether nothing else is on its way into this machine or out of it."""
        return set(+self._moving.get(node, Counter())) <= {handle}

    def promise(self, node: str, until_there: Coroutine[Any, Any, None]) -> None:
        """Nothing else begins in this machine until then, or until that is given up."""
        task = asyncio.create_task(self._kept(node, until_there), name=f"disk on its way into {node}")
        promised = self._promised.setdefault(node, set())
        promised.add(task)
        task.add_done_callback(lambda done: self._over(node, done))

    async def _kept(self, node: str, until_there: Coroutine[Any, Any, None]) -> None:
        try:
            await until_there
        except HcpError as error:
            log.warning("a disk that was promised is late", extra={"node": node, "error": str(error)})

    def _over(self, node: str, task: asyncio.Task[None]) -> None:
        promised = self._promised.get(node, set())
        promised.discard(task)
        if not promised:
            self._promised.pop(node, None)
