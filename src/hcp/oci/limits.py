"""How much of a registry's answers is taken: whoever runs a registry decides what it sends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import IO, Protocol

# Registries themselves refuse larger manifests.
MAX_MANIFEST = 4 << 20
MAX_TOKEN = 1 << 20
# Configurations, and other blobs that are read into memory.
MAX_SMALL_BLOB = 4 << 20
MAX_LAYERS = 256
# Of one layer that is searched for files: as it is sent, and unpacked.
MAX_LAYER = 512 << 20
MAX_UNPACKED = 2 << 30
MAX_MEMBERS = 300_000
# Of one file that is looked for.
MAX_FILE = 16 << 20
# The longest that one answer may take from its first byte to its last.
MANIFEST_SECONDS = 60.0
BLOB_SECONDS = 900.0


class TooLarge(ValueError):
    """More than any honest registry sends."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} bytes")


class Chunks(Protocol):
    """A body that arrives in pieces."""

    def iter_any(self) -> AsyncIterator[bytes]: ...


async def read_at_most(body: Chunks, limit: int) -> bytes:
    """The whole body, if it is not longer than the limit."""
    found = bytearray()
    async with asyncio.timeout(MANIFEST_SECONDS):
        async for chunk in body.iter_any():
            found += chunk
            if len(found) > limit:
                raise TooLarge(limit)
    return bytes(found)


class BoundedReader:
    """A file that is read forward, up to a limit and in pieces that fit into memory.

    A layer may unpack to a thousand times its size, and a header in it may announce any number of bytes.
    """

    def __init__(self, file: IO[bytes], limit: int = MAX_UNPACKED, piece: int = MAX_FILE) -> None:
        self._file = file
        self._limit = limit
        self._piece = piece
        self._at = 0

    def read(self, size: int) -> bytes:
        if not 0 <= size <= self._piece:
            raise TooLarge(self._piece)
        data = self._file.read(size)
        self._at += len(data)
        if self._at > self._limit:
            raise TooLarge(self._limit)
        return data

    def tell(self) -> int:
        return self._at

    def seek(self, place: int) -> int:
        """Forward only, by reading: what is skipped counts as well."""
        if place < self._at:
            raise OSError("it is not in order")
        while self._at < place and self.read(min(place - self._at, 1 << 20)):
            pass
        return self._at
