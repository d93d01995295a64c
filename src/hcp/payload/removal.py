"""Removing folders whatever their rights are."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path


def remove(path: Path) -> None:
    """A folder with all in it; folders in it that were made read-only do not hinder their owner."""
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        for folder, _, _ in os.walk(path):
            with suppress(OSError):
                Path(folder).chmod(0o700)
        shutil.rmtree(path, ignore_errors=True)
