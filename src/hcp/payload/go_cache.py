"""Giving back the disk that Go takes, when nobody needs it any more."""

from __future__ import annotations

import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hcp.payload.cleaning import disk_size
from hcp.payload.store import Store

_SMALL = 4 << 30
_LARGE = 12 << 30
_PLENTY = 24 << 30


def compiled(store: Store) -> Path:
    """The compiler cache."""
    return store.root / "go" / "build"


def compiled_at_most(store: Store) -> int:
    """What the compiler cache may hold between two components: dropped packages are compiled again, so as much as fits
    beside the modules, but a small disk does not have that.
    """
    return _LARGE if shutil.disk_usage(store.root).free >= _PLENTY else _SMALL


@contextmanager
def keeping(store: Store) -> Iterator[None]:
    """Until the end of a work of several runs, what one of them fetched and compiled stays for the next.

    Dropped only when all went well: whoever continues after an error or an interruption needs it.
    """
    with store.lock("go-modules", shared=True), store.lock("go-compiling", shared=True):
        yield
    drop_modules(store)
    drop_compiled(store)


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
            _remove_later(store, folder)
        return alone


def drop_compiled(store: Store, above: int = 0) -> bool:
    """Removes the compiler cache if it has grown beyond a size and nobody is compiling."""
    folder = compiled(store)
    if not folder.exists() or disk_size(folder) <= above:
        return False
    with store.lock("go-compiling", wait=False) as alone:
        if alone:
            _remove_later(store, folder)
        return alone


def _remove_later(store: Store, folder: Path) -> None:
    """Gone at once for everybody, but the disk needs minutes for so many files: nobody waits for that.

    What a stopped machine leaves of it lies with the unfinished builds, where `hcp payload clean` finds it.
    """
    aside = store.root / "work" / f"dropped-{uuid.uuid4().hex[:8]}"
    aside.parent.mkdir(parents=True, exist_ok=True)
    folder.rename(aside)
    nothing = subprocess.DEVNULL
    subprocess.Popen(
        ["nice", "-n", "19", "rm", "-rf", str(aside)],
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
        start_new_session=True,
    )
