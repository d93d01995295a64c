"""Steps that go on while later ones are done: most of what they do is waiting."""

from __future__ import annotations

import contextlib
import queue
import shlex
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hcp.errors import HcpError
from hcp.local.demo.children import end, hcp
from hcp.local.demo.plan import Step
from hcp.local.demo.position import Position

_LAST_LINES = 2.0  # seconds in which what a step said last reaches its log


@dataclass
class _Running:
    step: Step
    number: int
    child: subprocess.Popen[bytes]
    log: Path
    since: float
    until: float = 0.0
    enough: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        """Raises HcpError when the step ended without success."""
        self.over.wait()
        if code := self.child.wait():
            said = self.log.read_text(errors="replace").strip().splitlines()
            raise HcpError(
                f"Step {self.number + 1}, '{self.step.title}', ended with exit code {code}",
                cause=" ".join(said[-3:]),
                hint="What was done stays: run `make demo` again and it continues here.",
            )


class Beside(contextlib.ExitStack):
    """What was started and not waited for yet. It ends with the tour."""

    def __init__(self, folder: Path, say: Callable[[str], None], laps: list[tuple[str, float]]) -> None:
        super().__init__()
        self._folder, self._say, self._laps = folder, say, laps
        self._running: list[_Running] = []
        self._news: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()

    def start(self, step: Step, position: Position) -> None:
        log = self._folder / f"step-{position.number + 1}.log"
        self._say(f"\n== {position.heading(step)}\n$ hcp {shlex.join(step.command)}")
        self._say(f"It goes on beside the next steps (log: {log})")
        child = subprocess.Popen(hcp(step.command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.callback(end, child)
        one = _Running(step, position.number, child, log, time.monotonic())
        self._running.append(one)
        threading.Thread(target=self._follow, args=(one,), daemon=True).start()

    def watch(self, child: subprocess.Popen[bytes]) -> int:
        """Waits for the step in front and gives its exit code. One beside it that fails is heard of at once: what is
        in front might wait for what it does.
        """

        def wait() -> None:
            child.wait()
            self._news.put(child)

        threading.Thread(target=wait, daemon=True).start()
        while (told := self._news.get()) is not child:
            self._heed(told)
        return child.wait()

    def enough(self) -> None:
        """Waits until every step beside has said what later ones want of it, or is done."""
        for one in self._running:
            if not one.enough.is_set() and not one.over.is_set():
                self._say(f"\n== Waiting for step {one.number + 1}: {one.step.title}")
            while not one.enough.is_set() and not one.over.is_set():
                self._heed(self._news.get())

    def wait(self) -> None:
        while self._running:
            one = self._running[0]
            if not one.over.is_set():
                self._say(f"\n== Waiting for step {one.number + 1}: {one.step.title}")
            one.wait()
            self._running.pop(0)
            self._laps.append((one.step.title, one.until - one.since))

    def _heed(self, told: subprocess.Popen[bytes]) -> None:
        for one in self._running:
            if one.child is told and one.over.is_set():
                one.wait()

    def _follow(self, one: _Running) -> None:
        copying = threading.Thread(target=self._copy, args=(one,), daemon=True)
        copying.start()
        one.child.wait()
        copying.join(_LAST_LINES)  # what the step left behind might hold its output open
        one.until = time.monotonic()
        one.over.set()
        self._news.put(one.child)

    def _copy(self, one: _Running) -> None:
        assert one.child.stdout is not None, "it was asked for"
        with one.log.open("wb") as log:
            for line in one.child.stdout:
                log.write(line)
                log.flush()
                if one.step.enough and one.step.enough.encode() in line:
                    one.enough.set()
                    self._news.put(one.child)
