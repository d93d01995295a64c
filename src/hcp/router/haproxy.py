"""The HAProxy process: started once, fed with tables through its control socket, started again should it end.

It is never reloaded, so no connection is ever cut by a change, and no old process stays behind for the long ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hcp.errors import HcpError
from hcp.router import scripted, waiting
from hcp.router.config import CONFIG, SCRIPT, WAKE_SOCKET, Settings, map_name, render
from hcp.router.keys import Keys
from hcp.router.maps import CHANGES, CHOICES, NUMBERS, ORDER, Row, problem
from hcp.router.tables import Tables

log = logging.getLogger(__name__)
# HAProxy reads a command into one buffer of 16 KiB.
CHUNK = 8000
STOP_AFTER = 5.0
# Bytes that Linux takes, which longer ones would only show as a HAProxy that never answers.
LONGEST_SOCKET = 107
COMMAND_TIMEOUT = 10.0
# A process that lived this long was healthy: its end is not answered with a growing pause.
HEALTHY_AFTER = 10.0
NEW_VERSION = "New version created:"
# A table of which more than this part changes, and more than so many rows, is handed over as a whole.
LARGE_PART, FEW_ROWS = 0.25, 64


@dataclass(slots=True)
class Pushed:
    """What came of handing tables over: which changed, and the rows HAProxy would not take, with its words."""

    changed: list[str] = field(default_factory=list)
    refused: dict[Row, str] = field(default_factory=dict)


class _ChunkRefused(HcpError):
    """HAProxy does not take some row of a piece of a table."""

    def __init__(self, rows: str, answer: str) -> None:
        super().__init__("HAProxy refused a change of a table", cause=answer)
        self.rows = rows


def chunks(table: Mapping[str, str]) -> list[str]:
    """The table as text, in pieces that fit into one command each."""
    return _pieces(f"{key} {value}\n" for key, value in sorted(table.items()))


def _pieces(lines: Iterable[str]) -> list[str]:
    found: list[str] = []
    size = CHUNK
    for line in lines:
        if size + len(line) > CHUNK:
            found.append("")
            size = 0
        found[-1] += line
        size += len(line)
    return found


def escaped(word: str) -> str:
    """A word of a row as a word of a command: what means anything there means itself."""
    return re.sub(r"[^A-Za-z0-9._/@#|*-]", r"\\\g<0>", word)


class HAProxy:
    """One running HAProxy and what it was last told."""

    def __init__(self, settings: Settings, binary: str = "haproxy") -> None:
        self.settings = settings
        self._binary = binary
        # What HAProxy has taken: a process that starts again begins with it, and it is known to start with it.
        self._told: dict[str, dict[str, str]] = {name: {} for name in ORDER}
        # Tables of which it is not known what HAProxy has: they are handed over as a whole.
        self._unsure: set[str] = set()
        self.keys = Keys(settings, self.command)
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self.starts = 0

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.alive else None

    async def start(self) -> None:
        """Start with empty tables and keep it running: no row that is still to be pushed can hinder the start."""
        if shutil.which(self._binary) is None:
            raise HcpError(
                f"The program {self._binary} was not found",
                hint="The router drives HAProxy 2.6 or newer: install it, or name it with --haproxy.",
            )
        if len(os.fsencode(self.settings.socket)) > LONGEST_SOCKET:
            raise HcpError(
                f"{self.settings.directory} is too long for the path of a socket",
                hint="Set TMPDIR to a folder with a shorter path.",
            )
        self.settings.directory.mkdir(parents=True, exist_ok=True)
        (self.settings.directory / CONFIG).write_text(render(self.settings), encoding="utf-8")
        if self.settings.wakes:
            (self.settings.directory / SCRIPT).write_text(waiting.script(WAKE_SOCKET), encoding="utf-8")
        if self.settings.ends_tls:
            rules = scripted.script(map_name(CHOICES), map_name(CHANGES))
            (self.settings.directory / scripted.SCRIPT).write_text(rules, encoding="utf-8")
        await self._spawn()
        self._keeper = asyncio.create_task(self._keep(), name="haproxy")

    async def push(self, tables: Tables) -> Pushed:
        """Hand over what changed. When a row is refused, the answer names it; what was touched is still to be told."""
        done, born = Pushed(), self.starts
        for name, key in tables.touched:
            value = tables.rows[name].get(key)
            if value is not None and (wrong := problem(key, value)):
                done.refused[name, key] = wrong
        if done.refused:
            return done
        changes = {name: self._changes(name, tables) for name in self.settings.tables}
        done.changed = [name for name, rows in changes.items() if rows or name in self._unsure]
        for name in done.changed:
            done.refused = await self._put(name, changes[name], tables.rows[name])
            if done.refused:
                return done
        for name in reversed(done.changed):
            await self._drop(name, [key for key, value in changes[name].items() if value is None])
        if self.starts != born:
            self._unsure.update(self.settings.tables)
            raise HcpError("HAProxy was started anew while it was told of changes")
        tables.touched.clear()
        return done

    def _changes(self, name: str, tables: Tables) -> dict[str, str | None]:
        """Of rows that were touched, those that HAProxy has otherwise."""
        told, wanted = self._told[name], tables.rows[name]
        found = {key: wanted.get(key) for table, key in tables.touched if table == name}
        return {key: value for key, value in found.items() if value != told.get(key)}

    async def _put(self, name: str, changes: Mapping[str, str | None], wanted: Mapping[str, str]) -> dict[Row, str]:
        """Tell what is new or other than before, row by row, or all where much is. The answer: what is refused."""
        told = self._told[name]
        if name not in self._unsure and len(changes) <= max(FEW_ROWS, LARGE_PART * len(told)):
            given = {key: value for key, value in changes.items() if value is not None}
            other = {key: value for key, value in given.items() if key in told}
            # Should it end here, HAProxy has something that is not written down.
            self._unsure.add(name)
            words = await self._change(name, {key: given[key] for key in given.keys() - other.keys()}, other)
            if not words:
                told.update(given)
                self._unsure.discard(name)
                return {}
            log.warning("a change was not taken, the whole table follows", extra={"table": name, "words": words[:300]})
        try:
            await self._replace(name, wanted)
        except _ChunkRefused as error:
            refused = await self._refused_rows(name, error.rows)
            if not refused:
                raise
            return refused
        self._told[name] = dict(wanted)
        self._unsure.discard(name)
        return {}

    async def _change(self, name: str, new: Mapping[str, str], other: Mapping[str, str]) -> str:
        """HAProxy's words, should it not take something; none otherwise."""
        path = map_name(name)
        if name in NUMBERS and not all(value.isdigit() for value in other.values()):
            return "not a number: of a row that is there HAProxy 2.6 would not say so"
        for rows in chunks(new):
            if words := await self.command(f"add map {path} <<\n{rows}"):
                return words
        commands = (f"set map {path} {escaped(key)} {escaped(value)};" for key, value in sorted(other.items()))
        for line in _pieces(commands):
            if words := await self.command(line.removesuffix(";")):
                return words
        return ""

    async def _drop(self, name: str, keys: list[str]) -> None:
        """Take rows away that nobody wants any more; nothing leads to them by now."""
        gone = sorted(key for key in keys if key in self._told[name])
        if not gone:
            return
        path = map_name(name)
        self._unsure.add(name)
        for line in _pieces(f"del map {path} {escaped(key)};" for key in gone):
            if words := await self.command(line.removesuffix(";")):
                raise HcpError(f"HAProxy refused to take rows out of table {name}", cause=words)
        for key in gone:
            del self._told[name][key]
        self._unsure.discard(name)

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_AFTER)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def command(self, text: str) -> str:
        """One command of HAProxy's control language."""
        async with asyncio.timeout(COMMAND_TIMEOUT):
            reader, writer = await asyncio.open_unix_connection(str(self.settings.socket))
            try:
                writer.write(text.encode() + b"\n")
                await writer.drain()
                return (await reader.read()).decode().strip()
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    async def _replace(self, name: str, table: Mapping[str, str]) -> None:
        """Swap a whole table in one step: a look-up sees the old one or the new one."""
        path = map_name(name)
        version = await self._prepare(name)
        try:
            for rows in chunks(table):
                await self._add(version, name, rows)
            answer = await self.command(f"commit map @{version} {path}")
            if answer:
                raise HcpError(f"HAProxy refused the new version of table {name}", cause=answer)
        except HcpError:
            await self.command(f"clear map @{version} {path}")
            raise

    async def _prepare(self, name: str) -> str:
        answer = await self.command(f"prepare map {map_name(name)}")
        if not answer.startswith(NEW_VERSION):
            raise HcpError(f"HAProxy refused a new version of table {name}", cause=answer)
        return answer.removeprefix(NEW_VERSION).strip()

    async def _add(self, version: str, name: str, rows: str) -> None:
        answer = await self.command(f"add map @{version} {map_name(name)} <<\n{rows}")
        if answer:
            raise _ChunkRefused(rows, answer)

    async def _refused_rows(self, name: str, rows: str) -> dict[Row, str]:
        """Which rows of a refused piece are to blame: each is tried alone in a version that nobody uses."""
        version = await self._prepare(name)
        found: dict[Row, str] = {}
        for row in rows.splitlines():
            try:
                await self._add(version, name, f"{row}\n")
            except _ChunkRefused as error:
                found[name, row.partition(" ")[0]] = error.cause or "it gave no reason"
        await self.command(f"clear map @{version} {map_name(name)}")
        return found

    def _write(self, name: str) -> None:
        text = "".join(f"{key} {value}\n" for key, value in sorted(self._told[name].items()))
        (self.settings.directory / map_name(name)).write_text(text, encoding="utf-8")

    async def _spawn(self) -> None:
        for name in self.settings.tables:
            self._write(name)
        self._unsure.clear()
        self.keys.write()
        self.settings.socket.unlink(missing_ok=True)
        place = str(self.settings.directory)
        self._process = await asyncio.create_subprocess_exec(self._binary, "-db", "-C", place, "-f", CONFIG)
        self.starts += 1
        while not await self._answers():
            if not self.alive:
                raise HcpError(f"HAProxy ended at once with code {self._process.returncode}; its own words are above")
            await asyncio.sleep(0.02)
        await self.keys.trust_again()

    async def _answers(self) -> bool:
        """Whether it works: the socket alone is there before the ports are."""
        try:
            return "Version" in await self.command("show info")
        except (OSError, TimeoutError):
            return False

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        pause = 0.1
        while True:
            if self._process is not None:
                born = loop.time()
                code = await self._process.wait()
                pause = 0.1 if loop.time() - born > HEALTHY_AFTER else min(pause * 2, 10.0)
                log.error("haproxy ended, starting it again", extra={"code": code, "pause": pause})
            await asyncio.sleep(pause)
            try:
                await self._spawn()
            except (HcpError, OSError) as error:
                log.error("haproxy does not start", extra={"error": str(error)})
