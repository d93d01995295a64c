"""A bounded memory for things that never change under their key."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class LruCache(Generic[V]):
    """Keeps what was used last, up to a total size."""

    def __init__(self, limit: int, size_of: Callable[[V], int]) -> None:
        self._limit = limit
        self._size_of = size_of
        self._items: OrderedDict[Hashable, V] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: Hashable) -> V | None:
        value = self._items.get(key)
        if value is not None:
            self._items.move_to_end(key)
        return value

    def put(self, key: Hashable, value: V) -> None:
        self.drop(key)
        size = self._size_of(value)
        if size > self._limit:
            return
        self._items[key] = value
        self._size += size
        while self._size > self._limit:
            _, old = self._items.popitem(last=False)
            self._size -= self._size_of(old)

    def drop(self, key: Hashable) -> None:
        old = self._items.pop(key, None)
        if old is not None:
            self._size -= self._size_of(old)
