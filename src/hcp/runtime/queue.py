"""The work queue of a controller.

A key is worked on by one worker at a time, however often it is added meanwhile; different keys run in parallel. What
just changed goes before what is merely looked at again (first list, resync, retry), so a new object never waits behind
a whole fleet after a restart. Keys may belong to groups, of which each gets so many workers at a time: whoever hangs
or comes in thousands holds up its own group.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable

from hcp.kube.transport import backoff

FRESH = 0
AGAIN = 1


class WorkQueue:
    """Keys waiting to be worked on."""

    def __init__(
        self,
        *,
        base_delay: float = 0.1,
        max_delay: float = 60.0,
        on_wait: Callable[[float], None] | None = None,
        group: Callable[[str], str] | None = None,
        per_group: int = 0,
    ) -> None:
        """`group` names the group of a key, `per_group` how many of its keys are worked on at once."""
        self._base_delay = base_delay
        self._max_delay = max_delay
        self._on_wait = on_wait
        self._order = itertools.count()
        self._heap: list[tuple[int, int, str]] = []
        self._queued: dict[str, tuple[int, int]] = {}
        self._since: dict[str, float] = {}
        self._busy: set[str] = set()
        self._again: dict[str, int] = {}
        self._timers: dict[str, tuple[float, asyncio.TimerHandle]] = {}
        self._failures: dict[str, int] = {}
        self._group = group
        self._per_group = per_group
        self._in_group: dict[str, int] = {}
        self._group_of: dict[str, str] = {}
        self._parked: dict[str, list[tuple[int, int, str]]] = {}
        self._ready = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._queued)

    @property
    def busy(self) -> int:
        return len(self._busy)

    def add(self, key: str, priority: int = FRESH) -> None:
        """Ask for work on a key; many asks become one."""
        if self._closed:
            return
        if key in self._busy:
            self._again[key] = min(priority, self._again.get(key, AGAIN))
            return
        have = self._queued.get(key)
        if have is not None and have[0] <= priority:
            return
        entry = (priority, next(self._order))
        self._queued[key] = entry
        self._since.setdefault(key, time.monotonic())
        heapq.heappush(self._heap, (*entry, key))
        self._ready.set()

    def add_after(self, key: str, delay: float) -> None:
        """Ask for work later; of several asks the earliest counts, and any work in between cancels it."""
        if self._closed:
            return
        when = time.monotonic() + delay
        timer = self._timers.get(key)
        if timer is not None:
            if timer[0] <= when:
                return
            timer[1].cancel()
        handle = asyncio.get_running_loop().call_later(delay, self._fire, key)
        self._timers[key] = (when, handle)

    def retry(self, key: str, cap: float | None = None) -> float:
        """Ask again after a failure; the pause doubles with each failure in a row, up to `cap`. Returns the pause."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = backoff(failures, self._base_delay, self._max_delay if cap is None else min(cap, self._max_delay))
        self.add_after(key, delay)
        return delay

    def forgive(self, key: str) -> None:
        """The key succeeded: its next failure starts from the shortest pause."""
        self._failures.pop(key, None)

    def failures(self, key: str) -> int:
        return self._failures.get(key, 0)

    async def get(self) -> str | None:
        """The next key, now ours until `done`; None when the queue is closed."""
        while not self._closed:
            while self._heap:
                priority, order, key = heapq.heappop(self._heap)
                if self._queued.get(key) != (priority, order):
                    continue  # it was asked for again with more urgency
                if not self._enter(key, (priority, order, key)):
                    continue
                del self._queued[key]
                self._busy.add(key)
                waited = time.monotonic() - self._since.pop(key)
                timer = self._timers.pop(key, None)
                if timer is not None:
                    timer[1].cancel()
                if self._on_wait is not None:
                    self._on_wait(waited)
                return key
            self._ready.clear()
            await self._ready.wait()
        return None

    def _enter(self, key: str, entry: tuple[int, int, str]) -> bool:
        """Whether the key's group has room; a key that has to wait comes back when one of its group is done."""
        if self._group is None:
            return True
        group = self._group(key)
        if self._in_group.get(group, 0) >= self._per_group:
            heapq.heappush(self._parked.setdefault(group, []), entry)
            return False
        self._in_group[group] = self._in_group.get(group, 0) + 1
        self._group_of[key] = group
        return True

    def _leave(self, key: str) -> None:
        group = self._group_of.pop(key, None)
        if group is None:
            return
        left = self._in_group[group] - 1
        if left:
            self._in_group[group] = left
        else:
            del self._in_group[group]
        parked = self._parked.get(group, [])
        while parked:
            entry = heapq.heappop(parked)
            if self._queued.get(entry[2]) == entry[:2]:
                heapq.heappush(self._heap, entry)
                self._ready.set()
                break
        if not parked:
            self._parked.pop(group, None)

    def done(self, key: str) -> None:
        """Give the key back; if it was asked for meanwhile it is queued again."""
        self._busy.discard(key)
        self._leave(key)
        priority = self._again.pop(key, None)
        if priority is not None:
            self.add(key, priority)

    def close(self) -> None:
        """No more keys: waiting workers get None."""
        self._closed = True
        for _, handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        self._ready.set()

    def _fire(self, key: str) -> None:
        self._timers.pop(key, None)
        self.add(key, AGAIN)
