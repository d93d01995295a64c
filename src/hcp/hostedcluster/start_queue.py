"""Whose turn it is to start.

A control plane wants most of its processor time in its first seconds. When many are created at once and all start
together, each gets a crumb of it: probes time out, processes give up and begin anew, and every one is late. A few at a
time are each about as fast as one alone, and the last is earlier too. On a large management cluster nobody waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hcp.api.paths import at
from hcp.runtime import quantity

AT_LEAST = 4
PER_CORE = 2
# One that takes longer has other troubles, and does not hold up the rest.
PATIENCE = 60.0


class StartQueue:
    """Kept in memory only: after a restart those that have begun go on, and the others line up again."""

    def __init__(self, wake: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._wake = wake
        self._clock = clock
        self._starting: dict[str, float] = {}
        self._waiting: dict[str, None] = {}
        self._limit = 1

    def ahead(self, key: str, limit: int) -> int:
        """How many are starting before this one may; 0 means that it is its turn."""
        now, self._limit = self._clock(), limit
        self._starting = {k: since for k, since in self._starting.items() if now - since < PATIENCE}
        if key in self._starting:
            return 0
        self._waiting.setdefault(key)
        free = limit - len(self._starting)
        if key in self._fair()[: max(free, 0)]:
            del self._waiting[key]
            self._starting[key] = now
            return 0
        return len(self._starting)

    def _fair(self) -> list[str]:
        """Who waits, in turn: each namespace has its next one in before another has a further one."""
        taken: dict[str, int] = {}
        for key in self._starting:
            taken[key.partition("/")[0]] = taken.get(key.partition("/")[0], 0) + 1
        places = []
        for order, key in enumerate(self._waiting):
            namespace = key.partition("/")[0]
            taken[namespace] = taken.get(namespace, 0) + 1
            places.append((taken[namespace], order, key))
        return [key for _, _, key in sorted(places)]

    def done(self, key: str) -> None:
        """It is available, gone, or cannot start: those whose turn it is are woken, not all who wait."""
        self._waiting.pop(key, None)
        if self._starting.pop(key, None) is not None:
            for other in self._fair()[: max(self._limit - len(self._starting), 1)]:
                self._wake(other)


def limit(nodes: Iterable[Mapping[str, Any]], shards: int = 1) -> int:
    """How many may start at once, by the processors there are. Where no node is seen nothing is known: no limit.

    Each shard has its own line, and its part of the processors."""
    cores = [quantity.parse(at(n, "status.allocatable.cpu")) for n in nodes]
    known = [core for core in cores if core is not None]
    return -(-max(AT_LEAST, int(PER_CORE * sum(known))) // shards) if known else 1_000_000
