"""Giving back the disk that Go modules take, when nobody needs them any more."""

from __future__ import annotations

import shutil

from hcp.payload.store import Store


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
