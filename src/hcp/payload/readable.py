"""What is made is read by other users, in images by users nobody knows yet: not the person's umask decides."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_before: list[int] = []
"""The umask to go back to, once for each of those who make something now."""


@contextmanager
def by_everybody() -> Iterator[None]:
    """The umask belongs to the whole process: the last who needs ours gives back the one before the first."""
    with _lock:
        found = os.umask(0o022)
        _before.append(_before[0] if _before else found)
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            if not _before:
                os.umask(before)
