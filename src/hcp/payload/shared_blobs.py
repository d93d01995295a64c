"""Layers that several official images share are fetched once, as they are stored once.

Another image may have one already, or be about to have it: then this one waits for it instead of asking the registry
for the same bytes at the same time.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path

from hcp.oci.writer_layout import link_blob

_lock = threading.Lock()
_places: dict[str, Future[Path]] = {}
"""Digest → where whoever fetches it will have it, or had it last, in any thread of this process."""


async def get(digest: str, target: Path, cache: Path, fetch: Callable[[], Awaitable[None]]) -> None:
    """Puts a blob at `target`, named by its digest: from another image, or by `fetch`, which makes the file."""
    while not _there(target):
        mine: Future[Path] = Future()
        mine.set_running_or_notify_cancel()  # from now on who waits for it in vain does not end it for others
        with _lock:
            other = _places.setdefault(digest, mine)
        if other is mine:
            await _be_first(mine, digest, target, cache, fetch)
        elif not await _from(other, digest, target):
            _forget(digest, other)


async def _be_first(
    mine: Future[Path], digest: str, target: Path, cache: Path, fetch: Callable[[], Awaitable[None]]
) -> None:
    try:
        for path in _elsewhere(cache, target):
            if await _link(path, digest, target):
                return
        await fetch()
    finally:
        if _there(target):
            mine.set_result(target)
        else:
            _forget(digest, mine)
            mine.set_exception(LookupError(f"{digest} did not come"))


async def _from(other: Future[Path], digest: str, target: Path) -> bool:
    try:
        return await _link(await asyncio.wrap_future(other), digest, target)
    except LookupError:  # who was first has said why; here it is tried anew
        return False


def _forget(digest: str, place: Future[Path]) -> None:
    with _lock:
        if _places.get(digest) is place:
            del _places[digest]


def _there(target: Path) -> bool:
    return target.exists()


def _elsewhere(cache: Path, target: Path) -> list[Path]:
    return list(cache.glob(f"artifacts/*/*/image/blobs/sha256/{target.name}"))


async def _link(found: Path, digest: str, target: Path) -> bool:
    """Nothing is believed: the other may be damaged, or have gone meanwhile."""
    try:
        if await asyncio.to_thread(_sum, found) != digest:
            return False
        link_blob(found, target.parent)
    except OSError:
        return False
    return True


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
