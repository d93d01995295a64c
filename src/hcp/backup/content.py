"""What is inside a backup, as a row of pieces: objects, then the snapshot of etcd, then what is known of it.

A piece begins with a letter: `o` objects (JSON, maybe in several pieces), `s` the snapshot, `e` the end, which is the
last piece of the file. Nothing is kept in memory but objects, and of those no more than fits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hcp.backup.limits import LARGEST_SNAPSHOT, MOST_OBJECTS
from hcp.backup.sealing import (
    LONGEST_HEADER,
    PIECE,
    BrokenBackup,
    Header,
    Lock,
    Opener,
    Sealer,
    length_of,
    new_header,
    read_header,
)
from hcp.errors import HcpError
from hcp.kube import bounded_json

Object = dict[str, Any]
OBJECTS, SNAPSHOT, END = b"o", b"s", b"e"
# etcd puts a SHA-256 behind its pages.
_SUM = 32


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is known of the snapshot: its file, and what etcd said of its data when it was taken."""

    size: int
    sha256: str
    # Of the moment before it was taken, and the newest one after it.
    revision: int
    newest: int
    keys: int
    hash: int
    compacted: int
    members: int = 1


class Writer:
    """Writes a backup into something that takes bytes."""

    def __init__(self, lock: Lock, told: Mapping[str, Any], put: Callable[[bytes], Awaitable[None]]) -> None:
        header = new_header(lock, told)
        self._sealer = Sealer(lock, header)
        self._put = put
        self._start: bytes | None = header.raw
        self._held = b""
        self._hash, self._own = hashlib.sha256(), _OwnSum()
        self.size = 0

    async def objects(self, objects: list[Object]) -> None:
        text = json.dumps(objects, separators=(",", ":")).encode()
        for start in range(0, len(text), PIECE - 1):
            await self._piece(OBJECTS + text[start : start + PIECE - 1])

    async def snapshot(self, data: bytes) -> None:
        self._hash.update(data)
        self._own.update(data)
        self.size += len(data)
        self._held += data
        while len(self._held) >= PIECE - 1:
            await self._piece(SNAPSHOT + self._held[: PIECE - 1])
            self._held = self._held[PIECE - 1 :]

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    async def end(self, snapshot: Snapshot) -> None:
        if not self._own.right:
            raise HcpError("etcd's snapshot did not arrive whole", cause="its sum is another one", hint="try again")
        if self._held:
            await self._piece(SNAPSHOT + self._held)
            self._held = b""
        await self._piece(END + json.dumps(asdict(snapshot), sort_keys=True).encode(), last=True)

    async def _piece(self, data: bytes, *, last: bool = False) -> None:
        if self._start is not None:
            await self._put(self._start)
            self._start = None
        await self._put(self._sealer.seal(data, last=last))


class Bytes:
    """Exact numbers of bytes out of chunks of any size."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._held = bytearray()

    async def take(self, count: int) -> bytes:
        while len(self._held) < count:
            if not await self._more():
                raise BrokenBackup("the backup ends too early", cause="it was cut off, or is still being copied")
        found = bytes(self._held[:count])
        del self._held[:count]
        return found

    async def header(self) -> Header:
        while (found := read_header(bytes(self._held[:LONGEST_HEADER]))) is None:
            if not await self._more():
                raise BrokenBackup("the backup ends too early", cause="not even its first line is there")
        del self._held[: len(found.raw)]
        return found

    async def nothing_left(self) -> bool:
        while not self._held:
            if not await self._more():
                return True
        return False

    async def _more(self) -> bool:
        chunk = await anext(self._chunks, None)
        if chunk is None:
            return False
        self._held += chunk
        return True


@dataclass(frozen=True, slots=True)
class Whole:
    """A backup that was read to its end and found to be what was written."""

    header: Header
    objects: list[Object]
    snapshot: Snapshot


class Reader:
    """Reads a backup once, from its beginning to its end."""

    def __init__(self, lock: Lock, chunks: AsyncIterator[bytes]) -> None:
        self._lock = lock
        self._bytes = Bytes(chunks)
        self._hash, self._own = hashlib.sha256(), _OwnSum()
        self._size = 0
        self._objects = b""
        self.whole: Whole | None = None

    async def snapshot(self) -> AsyncGenerator[bytes, None]:
        """The snapshot, piece by piece; whether it is genuine to the end is known when this ends without an error."""
        header = await self._bytes.header()
        opener = Opener(self._lock, header)
        expected, last = OBJECTS, False
        while not last:
            length, last = length_of(await self._bytes.take(4))
            data = opener.open(await self._bytes.take(length), last=last)
            kind, data = data[:1], data[1:]
            if kind not in (expected, SNAPSHOT, END) or (kind == END) != last:
                raise BrokenBackup("the backup is damaged", cause="its pieces do not belong together")
            if kind == OBJECTS:
                self._objects += data
                if len(self._objects) > MOST_OBJECTS:
                    raise BrokenBackup("the backup is refused", cause="it has more objects than a cluster can have")
            elif kind == SNAPSHOT:
                expected = SNAPSHOT
                self._take(data)
                yield data
            else:
                self._finish(header, data)
        if not await self._bytes.nothing_left():
            raise BrokenBackup("the backup is damaged", cause="something stands behind its end")

    async def read(self) -> Whole:
        """All of it, only to know that it is whole."""
        async for _ in self.snapshot():
            pass
        assert self.whole is not None
        return self.whole

    def _take(self, data: bytes) -> None:
        self._hash.update(data)
        self._own.update(data)
        self._size += len(data)
        if self._size > LARGEST_SNAPSHOT:
            raise BrokenBackup("the backup is refused", cause="its snapshot is larger than etcd can be")

    def _finish(self, header: Header, data: bytes) -> None:
        try:
            end = Snapshot(**bounded_json.loads(data))
            objects = bounded_json.loads(self._objects)
            if not all(isinstance(value, int) for key, value in asdict(end).items() if key != "sha256"):
                raise TypeError("numbers are no numbers")
        except (ValueError, TypeError) as exc:
            raise BrokenBackup("the backup is damaged", cause=f"it cannot be read: {exc}") from None
        if not isinstance(objects, list) or not all(isinstance(one, dict) for one in objects):
            raise BrokenBackup("the backup is damaged", cause="its objects are none")
        if (end.size, end.sha256) != (self._size, self._hash.hexdigest()):
            raise BrokenBackup("the backup is damaged", cause="its snapshot is not the one that was taken")
        if not self._own.right:
            raise BrokenBackup("the backup is damaged", cause="the sum that etcd put into its snapshot is another one")
        self.whole = Whole(header, objects, end)


class _OwnSum:
    """The SHA-256 at the end of a snapshot is over all that stands before it."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._tail = b""

    def update(self, data: bytes) -> None:
        whole = self._tail + data
        self._hash.update(whole[:-_SUM])
        self._tail = whole[-_SUM:]

    @property
    def right(self) -> bool:
        return len(self._tail) == _SUM and self._hash.digest() == self._tail
