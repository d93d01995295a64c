"""Making payloads beside an event loop, so that a person who has enough is heard at once.

A build that runs in the loop's own thread, or in its pool of threads, is waited for to its end: the loop hears no
signal meanwhile, and Python does not leave before its pool is empty.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from pathlib import Path

from hcp.payload.engine import Engine
from hcp.payload.progress import Progress

_LAST_WORDS = 10.0  # seconds for programs to end and for what they left to be removed


async def make(engine: Engine, names: Iterable[str]) -> dict[str, Path]:
    """What `engine.ensure` gives. Cancelled, it ends the programs that build."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[dict[str, Path]] = loop.create_future()
    wanted = list(names)

    def settle(found: dict[str, Path] | None, error: BaseException | None) -> None:
        if ended.done():
            return
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(found or {})

    def work() -> None:
        try:
            found, error = engine.ensure(wanted), None
        except BaseException as caught:  # raised where it is awaited
            found, error = None, caught
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, found, error)

    threading.Thread(target=work, name="payload", daemon=True).start()
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        engine.stop()
        await asyncio.wait([ended], timeout=_LAST_WORDS)
        if ended.done() and not ended.cancelled():
            ended.exception()  # that it was stopped is known
        raise


async def ensure_async(
    names: Iterable[str],
    *,
    progress: Progress | None = None,
    from_dir: Path | None = None,
    build: bool = False,
) -> dict[str, Path]:
    """`ensure` for code that runs in an event loop."""
    return await make(Engine(progress=progress, from_dir=from_dir, use_downloads=not build), names)
