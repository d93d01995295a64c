"""Rotated log files, one per process."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 16 * 1024 * 1024
KEEP = 3


class RotatingLog:
    """An append-only file that is set aside when it gets big: x.log → x.log.1 → x.log.2, the oldest is dropped."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES, keep: int = KEEP) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.keep = keep
        self._file: BinaryIO | None = None
        self._size = 0

    def write(self, data: bytes) -> None:
        if self._file is None or self._size + len(data) > self.max_bytes:
            self._open()
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk must not stop the processes themselves
                self._file.write(data)
                self._size += len(data)

    def _open(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        with contextlib.suppress(OSError):
            if self.path.exists() and self.path.stat().st_size > self.max_bytes // 2:
                self._rotate()
            self._file = self.path.open("ab", buffering=0)
            self._size = self.path.stat().st_size

    def _rotate(self) -> None:
        for index in range(self.keep - 1, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{index}")
            if older.exists():
                older.replace(self.path.with_name(f"{self.path.name}.{index + 1}"))
        self.path.replace(self.path.with_name(f"{self.path.name}.1"))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
