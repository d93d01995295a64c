"""One supervised process: start, wait until it is well, watch, restart with back-off, stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from hcp.local.supervisor.environment import environment
from hcp.local.supervisor.logs import RotatingLog
from hcp.local.supervisor.probes import check
from hcp.local.supervisor.processes import Process
from hcp.local.supervisor.reaper import Reaper

FIRST_BACKOFF = 0.5
MAX_BACKOFF = 30.0
# A process that lived this long was well: the next crash starts the back-off anew.
STEADY_SECONDS = 60.0
STARTING_PERIOD = 0.1
STEADY_PERIOD = 5.0


def next_backoff(current: float, lived: float) -> float:
    """How long to wait before the next start, given the last wait and how long the process lived."""
    if lived >= STEADY_SECONDS or current <= 0:
        return FIRST_BACKOFF
    return min(current * 2, MAX_BACKOFF)


class Child:
    """Keeps one process alive. `ready` is set once its probe answered, and stays set across restarts."""

    def __init__(self, spec: Process, reaper: Reaper, log: RotatingLog, changed: Callable[[], None]) -> None:
        self.spec = spec
        self.ready = asyncio.Event()
        self.pid = 0
        self.restarts = 0
        self.state = "waiting"
        self.why = ""
        self.ready_after = 0.0
        self._reaper = reaper
        self.log = log
        self._changed = changed
        self._stopping = asyncio.Event()

    def facts(self) -> dict[str, Any]:
        return {
            "name": self.spec.name,
            "version": self.spec.version,
            "pid": self.pid,
            "state": self.state,
            "why": self.why,
            "restarts": self.restarts,
            "readyAfter": round(self.ready_after, 2),
        }

    async def run(self, after: list[Child]) -> None:
        """Lives until `stop`."""
        for other in after:
            if not await self._either(other.ready.wait()):
                return
        backoff = 0.0
        while not self._stopping.is_set():
            began = time.monotonic()
            code = await self._once(began)
            if self._stopping.is_set():
                return
            self.restarts += 1
            lived = time.monotonic() - began
            backoff = next_backoff(backoff, lived)
            self._set("crashed", f"{_ending(code)} after {lived:.1f} s; starting again in {backoff:.1f} s")
            self.log.write(f"=== {self.spec.name} {self.why}\n".encode())
            if not await self._either(asyncio.sleep(backoff, True)):
                return

    async def stop(self) -> None:
        self._stopping.set()
        if self.pid:
            _signal(self.pid, signal.SIGTERM)
            try:
                await asyncio.wait_for(self._reaper.wait(self.pid), self.spec.stop_seconds)
            except TimeoutError:
                _signal(self.pid, signal.SIGKILL)
                await self._reaper.wait(self.pid)
        self._set("stopped", "")

    async def _once(self, began: float) -> int:
        reader, writer = os.pipe()
        try:
            self.pid = self._reaper.spawn(self.spec.argv, environment(os.environ, self.spec.env), writer)
        except OSError as error:
            os.close(reader)
            self.log.write(f"=== {self.spec.name} cannot start: {error}\n".encode())
            return 127
        finally:
            os.close(writer)
        self._set("starting", "")
        copying = asyncio.create_task(self._copy(reader))
        watching = asyncio.create_task(self._watch(began))
        try:
            return await self._reaper.wait(self.pid)
        finally:
            self.pid = 0
            watching.cancel()
            # A grandchild may hold the pipe open: what it says later is nobody's.
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(copying, 1.0)

    async def _watch(self, began: float) -> None:
        """Probes until well, then from time to time: a process that hangs shows in `status`."""
        probe = self.spec.probe
        while True:
            why = await check(probe) if probe else ""
            if why:
                self._set("starting" if self.state == "starting" else "unwell", why)
            else:
                if self.state != "running":
                    self.ready_after = time.monotonic() - began
                self._set("running", "")
                self.ready.set()
            await asyncio.sleep(STEADY_PERIOD if self.state == "running" else STARTING_PERIOD)

    async def _copy(self, descriptor: int) -> None:
        loop = asyncio.get_running_loop()
        stream = asyncio.StreamReader()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(descriptor, "rb", buffering=0)
        )
        try:
            while data := await stream.read(65536):
                self.log.write(data)
        finally:
            transport.close()

    async def _either(self, event: Any) -> bool:
        """Waits for the event or for `stop`; False when it was `stop`."""
        waits = [asyncio.ensure_future(event), asyncio.ensure_future(self._stopping.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        return not self._stopping.is_set()

    def _set(self, state: str, why: str) -> None:
        if (state, why) != (self.state, self.why):
            self.state, self.why = state, why
            self._changed()


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _ending(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
    return f"ended with code {code}"
