"""The folder a run works in. Its layout is that of oc-mirror, whose users look for files there."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from hcp.errors import HcpError
from hcp.mirror.plan import Plan

SCHEME = "file://"


def folder(text: str, flag: str) -> Path:
    """The path of `file://DIR`; relative ones are meant from here."""
    if not text.startswith(SCHEME) or not text.removeprefix(SCHEME):
        raise HcpError(f'{flag} "{text}" names no folder', hint=f"write it as {SCHEME}DIR or {SCHEME}/DIR")
    return Path(text.removeprefix(SCHEME)).absolute()


class DiskError(HcpError):
    """Nothing more can be written here: no use in trying the next image."""


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """A disk that is full or closed, in one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskError(
                f"the disk of {path} is full",
                hint="make room, or name a folder on another disk; running it again goes on where this run ended",
            ) from error
        if isinstance(error, ConnectionError | TimeoutError):
            raise
        raise DiskError(f"{error.filename or path} cannot be used", cause=error.strerror or str(error)) from error


class Workspace:
    """`working-dir` below a folder, used by one run at a time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.working = root / "working-dir"
        self.resources = self.working / "cluster-resources"
        self.logs = self.working / "logs"
        self.made = self.working / "made"
        self.history = self.working / ".history"
        self.charts = self.working / "helm" / "charts"
        self.dry_run = self.working / "dry-run"
        self.delete = self.working / "delete"

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Nobody else works here meanwhile; a run that was killed holds nothing."""
        with disk_errors(self.root):
            self.working.mkdir(parents=True, exist_ok=True)
        with exclusive(self.working / ".lock", f"another run works in {self.root}"):
            yield

    def write(self, path: Path, text: str) -> None:
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file() and path.read_text() == text:
                return
            temporary = path.with_name(f".{path.name}.part")
            temporary.write_text(text)
            temporary.rename(path)

    def remember(self, plan: Plan) -> None:
        self.write(self.working / "plan.json", json.dumps(plan.to_dict(), indent=1, sort_keys=True))


@contextlib.contextmanager
def exclusive(path: Path, busy: str) -> Iterator[None]:
    with disk_errors(path):
        file = path.open("a+")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise HcpError(
                busy,
                cause=f"process {file.read().strip() or 'unknown'}",
                hint="wait until it has ended, or use another folder: two runs would write the same files",
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@contextlib.contextmanager
def cache_taken(cache: Path) -> Iterator[None]:
    """Blobs are shared by all workspaces of a machine, one run after the other."""
    with disk_errors(cache):
        cache.mkdir(parents=True, exist_ok=True)
    with exclusive(cache / ".lock", f"another run uses the cache {cache}"):
        yield


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
