"""The cache on disk: finished artifacts by content address, locks, and work in progress.

    <root>/artifacts/<component>/<key>/   finished, read-only, never changed afterwards
    <root>/work/<component>-<key>/        a build that is going on, or was killed
    <root>/locks/                         one lock file per artifact
    <root>/verified/                      which artifacts were read and found undamaged
    <root>/logs/<component>.log           what the tools said
    <root>/go/                            Go modules and, where PATH has none, Go itself

An artifact appears by one rename, so nothing half-written is ever seen under its final name.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from hcp.errors import HcpError
from hcp.payload.checksums import METADATA, DamagedError, fingerprint, read_metadata, seal, verify
from hcp.payload.removal import remove


def cache_root() -> Path:
    """`$XDG_CACHE_HOME/hcp`, by default `~/.cache/hcp`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hcp"


class Store:
    """Artifacts by component and key."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_root()

    def artifact(self, name: str, key: str) -> Path:
        return self.root / "artifacts" / name / key

    def work(self, name: str, key: str) -> Path:
        return self.root / "work" / f"{name}-{key}"

    def log(self, name: str) -> Path:
        return self.root / "logs" / f"{name}.log"

    def find(self, name: str, key: str) -> Path | None:
        """The artifact, if it is there and every file in it is what was once written; otherwise nothing."""
        return self.inspect(name, key)[0]

    def inspect(self, name: str, key: str) -> tuple[Path | None, str | None]:
        """The artifact, or the reason why the one on disk cannot be used.

        Reading gigabytes on every command would be slow, so a verified artifact is remembered by the size,
        inode and change time of its files; whatever touches a file changes these and makes us read it again.
        """
        path = self.artifact(name, key)
        if not path.is_dir():
            return None, None
        memo = self._memo(name, key)
        try:
            if memo.is_file() and memo.read_text() == fingerprint(path):
                return path, None
            verify(path, name, key)
        except (DamagedError, OSError, ValueError) as error:
            return None, str(error)
        self._remember(path, name, key)
        return path, None

    def _memo(self, name: str, key: str) -> Path:
        return self.root / "verified" / f"{name}-{key}"

    def _remember(self, path: Path, name: str, key: str) -> None:
        with suppress(OSError):  # a read-only cache is still a good cache
            _write_atomically(self._memo(name, key), fingerprint(path))

    def metadata(self, name: str, key: str) -> dict[str, Any]:
        return read_metadata(self.artifact(name, key))

    def finish(self, staging: Path, name: str, key: str, facts: dict[str, Any]) -> Path:
        """Turns a staging directory into the artifact: checksums, read-only, one rename."""
        seal(staging, {"component": name, "key": key, **facts})
        self.discard(name, key)
        path = self.adopt(staging, name, key)
        self._remember(path, name, key)
        return path

    def adopt(self, sealed: Path, name: str, key: str) -> Path:
        """Gives a sealed directory its final name."""
        path = self.artifact(name, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        sealed.rename(path)
        _sync_directory(path.parent)
        return path

    def discard(self, name: str, key: str) -> None:
        """Removes an artifact. It is first renamed away, so a crash in between leaves no half artifact."""
        path = self.artifact(name, key)
        if path.exists():
            doomed = self.root / "work" / f"discarded-{name}-{key}-{os.getpid()}"
            doomed.parent.mkdir(parents=True, exist_ok=True)
            path.rename(doomed)
            remove(doomed)
            self._memo(name, key).unlink(missing_ok=True)

    @contextmanager
    def lock(self, name: str, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
        """Holds a lock file; gives False when `wait` is off and somebody else has it. Ends with the process."""
        with self._open_lock(name) as handle:
            mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            try:
                fcntl.flock(handle, mode if wait else mode | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            if is_open_file(handle, self._lock_file(name)):
                yield True
                return
        # Somebody removed the file between our opening and locking it: the lock that counts is another one.
        with self.lock(name, shared=shared, wait=wait) as held:
            yield held

    def _lock_file(self, name: str) -> Path:
        return self.root / "locks" / f"{name}.lock"

    def _open_lock(self, name: str) -> BinaryIO:
        path = self._lock_file(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return path.open("ab")
        except OSError as error:
            raise HcpError(
                f"The cache {self.root} cannot be written",
                cause=error.strerror,
                hint="Point XDG_CACHE_HOME to a folder you own.",
            ) from error

    def artifacts(self) -> list[tuple[str, str]]:
        """Every artifact directory on disk as (component, key)."""
        root = self.root / "artifacts"
        return sorted((p.parent.name, p.name) for p in root.glob("*/*") if (p / METADATA).is_file())


def is_open_file(handle: BinaryIO, path: Path) -> bool:
    """Whether an open file is still the one under its name: a lock on a removed file protects nothing."""
    try:
        return os.path.samestat(os.fstat(handle.fileno()), path.stat())
    except OSError:
        return False


def _write_atomically(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.rename(path)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
