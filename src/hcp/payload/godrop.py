"""Giving back the disk that Go takes, when nobody needs it any more."""

from __future__ import annotations

import shutil

from hcp.payload.cleaning import disk_size
from hcp.payload.store import Store

COMPILED_AT_MOST = 4 << 30
"""What the compiler cache may hold between two components: more would not fit a small disk beside the modules."""


def drop_modules(store: Store) -> bool:
    """Removes the module cache unless another run is building; a run that was killed keeps its downloads.

    Modules of all components together take about 9 GB. They are needed only while building, and binaries are
    what is kept, so the end of a successful run is the moment to drop them.
    """
    folder = store.root / "go" / "mod"
    if not folder.exists():
        return False
    with store.lock("go-modules", wait=False) as alone:
        if alone:
            shutil.rmtree(folder, ignore_errors=True)
        return alone


def drop_compiled(store: Store, above: int = 0) -> bool:
    """Removes the compiler cache if it has grown beyond a size and nobody is compiling."""
    folder = store.root / "go" / "build"
    if not folder.exists() or disk_size(folder) <= above:
        return False
    with store.lock("go-compiling", wait=False) as alone:
        if alone:
            shutil.rmtree(folder, ignore_errors=True)
        return alone
