"""A folder: of this machine, of a network, or of a claim that is mounted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from hcp.backup import naming
from hcp.backup.naming import Name
from hcp.backup.stores.base import CHUNK, Entry, missing
from hcp.errors import HcpError

# Where a file is written until it is whole; no name of a backup begins so.
_UNFINISHED = ".unfinished-"


class Folder:
    """Files that only their owner can read."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    @property
    def place(self) -> str:
        return str(self._path)

    async def entries(self) -> list[Entry]:
        try:
            files = list(os.scandir(self._path))
        except FileNotFoundError:
            return []
        except OSError as exc:
            raise self._trouble("read", exc) from None
        found = []
        for file in files:
            name = naming.from_file(file.name)
            if name is not None and file.is_file(follow_symlinks=False):
                found.append(Entry(name, file.stat(follow_symlinks=False).st_size))
        return sorted(found)

    @contextlib.asynccontextmanager
    async def writing(self, name: Name) -> AsyncIterator[_File]:
        target, part = self._path / name.file, self._path / f"{_UNFINISHED}{name.file}.{os.getpid()}"
        try:
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except OSError as exc:
            raise self._trouble("write to", exc) from None
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield _File(file)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                raise FileExistsError(0, f"{target.name} is there already")
            part.rename(target)
            self._settle()
        except OSError as exc:
            raise self._trouble("write to", exc) from None
        finally:
            part.unlink(missing_ok=True)

    async def reading(self, name: Name, most: int = 0) -> AsyncIterator[bytes]:
        left = most or None
        try:
            descriptor = os.open(self._path / name.file, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise missing(name, self.place) from None
        except OSError as exc:
            raise self._trouble("read", exc) from None
        with os.fdopen(descriptor, "rb") as file:
            while left is None or left > 0:
                try:
                    chunk = file.read(CHUNK if left is None else min(CHUNK, left))
                except OSError as exc:
                    raise self._trouble("read", exc) from None
                if not chunk:
                    return
                if left is not None:
                    left -= len(chunk)
                yield chunk

    async def remove(self, name: Name) -> None:
        try:
            (self._path / name.file).unlink()
        except FileNotFoundError:
            raise missing(name, self.place) from None
        except OSError as exc:
            raise self._trouble("delete from", exc) from None

    async def close(self) -> None:
        return

    def _settle(self) -> None:
        """The new name is on the disk too."""
        descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _trouble(self, what: str, exc: OSError) -> HcpError:
        return HcpError(f"cannot {what} the folder {self._path}", cause=exc.strerror or str(exc))


class _File:
    """A file that is being written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    async def put(self, data: bytes) -> None:
        self._file.write(data)
