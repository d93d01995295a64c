"""Joining a terminal, or a pipe, to a serial console that is reached by a websocket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
import threading
import tty
from collections.abc import Iterator

import aiohttp

from hcp.cli.engine.terminal import note
from hcp.errors import HcpError

ESCAPE = b"\x1d"  # Ctrl-]
Connection = aiohttp.ClientWebSocketResponse[bool]


async def attach(connection: Connection, name: str, idle: float) -> int:
    """Types what is typed and shows what is said, until somebody ends it."""
    source, sink = sys.stdin.fileno(), sys.stdout.fileno()
    live = os.isatty(source)
    if live:
        note(f"Connected to the console of {name}; Ctrl-] ends it")
    with raw(source) if live else contextlib.nullcontext():
        heard = asyncio.Event()
        speaking = asyncio.create_task(_speak(connection, source, live))
        hearing = asyncio.create_task(_hear(connection, sink, heard))
        try:
            await asyncio.wait({speaking, hearing}, return_when=asyncio.FIRST_COMPLETED)
            if not hearing.done():
                speaking.result()
                if not live:
                    await _silence(hearing, heard, idle)
        finally:
            for task in (speaking, hearing):
                task.cancel()
            await asyncio.gather(speaking, hearing, return_exceptions=True)
    if live:
        note(f"\nDisconnected from {name}")
    if hearing.done() and not hearing.cancelled():
        hearing.result()
        raise HcpError(
            f"the console of {name} was closed from the other side",
            hint="the machine ended, or somebody else opened its console",
        )
    return 0


async def _hear(connection: Connection, sink: int, heard: asyncio.Event) -> None:
    async for message in connection:
        if message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT):
            data = message.data if isinstance(message.data, bytes) else str(message.data).encode()
            heard.set()
            while data:
                data = data[os.write(sink, data) :]


async def _speak(connection: Connection, source: int, live: bool) -> None:
    """Ends with the input, or with the escape character of a terminal."""
    with _reading(source) as pieces:
        while piece := await pieces.get():
            typed, escape, _ = piece.partition(ESCAPE) if live else (piece, b"", b"")
            if typed:
                await connection.send_bytes(typed)
            if escape:
                return


async def _silence(hearing: asyncio.Task[None], heard: asyncio.Event, idle: float) -> None:
    """Until the machine has said nothing for a while."""
    while not hearing.done():
        heard.clear()
        waiting = asyncio.create_task(heard.wait())
        done, _ = await asyncio.wait({waiting, hearing}, timeout=idle, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not done:
            return


@contextlib.contextmanager
def _reading(source: int) -> Iterator[asyncio.Queue[bytes]]:
    """Pieces of the input, an empty one at its end. A thread, because a file cannot be waited for in any other way."""
    loop, pieces = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def read() -> None:
        piece = b"?"
        while piece:
            try:
                piece = os.read(source, 4096)
            except OSError:
                piece = b""
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

    threading.Thread(target=read, daemon=True).start()
    yield pieces


@contextlib.contextmanager
def raw(terminal: int) -> Iterator[None]:
    """Every key goes to the machine as it is, Ctrl-C too; the terminal is as before afterwards, whatever happens."""
    before = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal)
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
