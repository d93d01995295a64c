"""A small rate limit: so many requests at once, then a steady trickle, per key."""

from __future__ import annotations

from collections import OrderedDict


class RateLimit:
    """Token buckets by key; the least recently used key is forgotten first so that memory is bounded."""

    def __init__(self, rate: float, burst: float, keys: int = 10_000) -> None:
        self._rate = rate
        self._burst = burst
        self._keys = keys
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allow(self, key: str, now: float) -> bool:
        """Take one request of ``key`` at ``now`` (seconds of any steady clock)."""
        level, last = self._buckets.pop(key, (self._burst, now))
        level = min(self._burst, level + (now - last) * self._rate)
        allowed = level >= 1
        self._buckets[key] = (level - 1 if allowed else level, now)
        if len(self._buckets) > self._keys:
            self._buckets.popitem(last=False)
        return allowed
