"""One command at a time may change a cluster."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hcp.payload.store import is_open_file


@contextmanager
def exclusive(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Holds the lock file; `waiting` is called once when somebody else has it. Ends with the process."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(handle, fcntl.LOCK_EX)
            if is_open_file(handle, path):
                yield
                return
        # Whoever had it removed the file: the lock that counts is a new one.
