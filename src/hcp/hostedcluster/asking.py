"""Questions to servers of others, asked beside the passes: a pass takes what is known and never waits.

What was answered is believed for a while; of one namespace only a few questions are under way at a time.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hcp.runtime.store import key_of

log = logging.getLogger(__name__)
Q = TypeVar("Q")
A = TypeVar("A")
# No pass is asked for sooner than this because of the time alone, unless a question says otherwise.
AGAIN = 120.0
PER_NAMESPACE = 2


@dataclass(slots=True)
class _Asked(Generic[Q, A]):
    question: Q
    task: asyncio.Task[None] | None = None
    answer: A | None = None
    due: float = 0.0


class Asking(Generic[Q, A]):
    """What is known, by cluster."""

    # For the names of tasks.
    what = "something"
    again = AGAIN

    def __init__(self, ended: Callable[[str], None]) -> None:
        """`ended` is told the key of a cluster about which something else is known now."""
        self._ended = ended
        self._known: dict[str, _Asked[Q, A]] = {}
        self._slots: dict[str, asyncio.Semaphore] = {}

    @abstractmethod
    async def answer(self, cluster: dict[str, Any], question: Q) -> tuple[A, float]:
        """The answer, and for how many seconds it is believed. Raises nothing."""

    def look(self, cluster: Mapping[str, Any], question: Q) -> tuple[A | None, float]:
        """What is known, None while nothing is, and in how many seconds to look again."""
        key = key_of(dict(cluster))
        known = self._known.get(key)
        if known is None or known.question != question:
            self.forget(key)
            known = self._known[key] = _Asked(question)
        clock = asyncio.get_running_loop().time()
        if known.task is None and clock >= known.due:
            known.task = asyncio.create_task(self._ask(key, dict(cluster), known), name=f"{self.what} of {key}")
        return known.answer, max(known.due - clock, self.again)

    def forget(self, key: str) -> None:
        """The cluster is gone, or has nothing to ask any more."""
        known = self._known.pop(key, None)
        if known is not None and known.task is not None:
            known.task.cancel()

    async def close(self) -> None:
        tasks = [known.task for known in self._known.values() if known.task is not None]
        self._known.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, key: str, cluster: dict[str, Any], known: _Asked[Q, A]) -> None:
        before = known.answer
        namespace = key.partition("/")[0]
        async with self._slots.setdefault(namespace, asyncio.Semaphore(PER_NAMESPACE)):
            try:
                known.answer, wait = await self.answer(cluster, known.question)
            except Exception:
                # What servers of others say may be anything. A question that ended so would never be asked again.
                log.exception("a question could not be asked", extra={"key": key, "what": self.what})
                wait = AGAIN
        known.due = asyncio.get_running_loop().time() + wait
        known.task = None
        if known.answer != before:
            self._ended(key)
