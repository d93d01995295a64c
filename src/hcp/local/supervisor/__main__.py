"""`python -m hcp.local.supervisor STATE_FOLDER`"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from hcp.local.supervisor.child import Child
from hcp.local.supervisor.logs import RotatingLog
from hcp.local.supervisor.processes import Process, parse, read
from hcp.local.supervisor.reaper import Reaper


class Supervisor:
    """All processes of one cluster and the socket where commands ask about them."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.began = time.time()
        self.children: dict[str, Child] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.reaper = Reaper()
        self.stopping = asyncio.Event()
        self.changes = asyncio.Condition()
        self.version = 0

    async def run(self) -> None:
        os.umask(0o022)  # a node's files are read by many users; who may come near them, the state folder decides
        self.reaper.install()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        loop.add_signal_handler(signal.SIGHUP, self._load)
        self._load()
        socket = self.state / "run" / "control.sock"
        socket.unlink(missing_ok=True)
        # A Unix socket's path may have at most 107 bytes; a state folder may be deeper than that.
        os.chdir(socket.parent)
        server = await asyncio.start_unix_server(self._serve, socket.name)
        await self.stopping.wait()
        server.close()
        await self._stop_all()
        socket.unlink(missing_ok=True)

    def _load(self) -> None:
        """Starts what is new in the process list and ends what is not in it any more. The rest is left alone."""
        wanted = read(self.state / "run" / "processes.json")
        for name in self.children.keys() - {spec.name for spec in wanted}:
            self._remember(asyncio.create_task(self.children.pop(name).stop()))
        for spec in wanted:
            if spec.name in self.children:
                continue
            log = RotatingLog(self.state / "logs" / f"{spec.name}.log")
            child = Child(spec, self.reaper, log, self._changed)
            self.children[spec.name] = child
            self._remember(asyncio.create_task(child.run([self.children[name] for name in spec.after])))

    def _replace(self, wanted: list[Process], names: list[str]) -> None:
        """Exchanges these processes for others of the same names. Whoever came after them has begun and goes on."""
        for spec in wanted:
            old = self.children.get(spec.name)
            if spec.name in names and old is not None and old.spec != spec:
                child = Child(spec, self.reaper, old.log, self._changed)
                self.children[spec.name] = child
                self._remember(asyncio.create_task(self._exchange(old, child)))

    async def _exchange(self, old: Child, child: Child) -> None:
        """They may listen at the same place: one ends before the other begins."""
        await old.stop()
        await child.run([self.children[name] for name in child.spec.after])

    def _remember(self, task: asyncio.Task[None]) -> None:
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            print(f"supervisor: {task.exception()!r}", file=sys.stderr, flush=True)

    def _changed(self) -> None:
        self.version += 1
        self._remember(asyncio.ensure_future(self._notify()))

    async def _notify(self) -> None:
        async with self.changes:
            self.changes.notify_all()

    async def _stop_all(self) -> None:
        """In reverse order, so that nothing loses what it depends on while it still writes."""
        for child in reversed(self.children.values()):
            await child.stop()

    def facts(self) -> dict[str, Any]:
        return {
            "began": self.began,
            "version": self.version,
            "stopping": self.stopping.is_set(),
            # That it knows how to exchange single processes.
            "replaces": True,
            "processes": [child.facts() for child in self.children.values()],
        }

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One JSON request per line: {"do": "facts" | "stop" | "reload" | "replace" | "watch", …}."""
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError):
            request = json.loads(await reader.readline())
            if request["do"] == "stop":
                self.stopping.set()
            elif request["do"] == "reload":
                self._load()
            elif request["do"] == "replace":
                self._replace(parse(request["processes"]), request["names"])
            elif request["do"] == "watch":
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._newer(int(request["version"])), float(request["seconds"]))
            writer.write(json.dumps(self.facts()).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def _newer(self, version: int) -> None:
        async with self.changes:
            await self.changes.wait_for(lambda: self.version > version)


def main() -> None:
    asyncio.run(Supervisor(Path(sys.argv[1])).run())


if __name__ == "__main__":
    main()
