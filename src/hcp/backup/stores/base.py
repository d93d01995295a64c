"""What every store can do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from hcp.backup.naming import Name
from hcp.errors import HcpError

CHUNK = 256 * 1024


@dataclass(frozen=True, order=True, slots=True)
class Entry:
    """A backup in a store."""

    name: Name
    size: int


class Sink(Protocol):
    """Takes the bytes of one file."""

    async def put(self, data: bytes) -> None: ...


class Store(Protocol):
    """Keeps whole files; what breaks off in the middle of writing is never shown and leaves nothing behind."""

    @property
    def place(self) -> str:
        """Where it is, for people."""
        ...

    async def entries(self) -> list[Entry]: ...

    def writing(self, name: Name) -> AbstractAsyncContextManager[Sink]:
        """The file appears when this ends without an error, and not before."""
        ...

    def reading(self, name: Name, most: int = 0) -> AsyncIterator[bytes]:
        """The file in chunks; `most` is how many bytes of its beginning are wanted, 0: all."""
        ...

    async def remove(self, name: Name) -> None: ...

    async def close(self) -> None: ...


def missing(name: Name, place: str) -> HcpError:
    return HcpError(
        f"there is no backup {name} in {place}", hint="hcp backup list shows those that are there", exit_code=4
    )
