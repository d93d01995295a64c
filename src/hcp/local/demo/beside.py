"""Steps that go on while later ones are done: most of what they do is waiting."""

from __future__ import annotations

import contextlib
import queue
import shlex
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hcp.errors import HcpError
from hcp.local.demo.children import end, hcp
from hcp.local.demo.plan import Step
from hcp.local.demo.position import Position


@dataclass
class _Running:
    step: Step
    number: int
    child: subprocess.Popen[bytes]
    log: Path
    since: float
    until: float = 0.0

    def wait(self) -> None:
        """Raises HcpError when the step ended without success."""
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
        self._ended: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()

    def start(self, step: Step, position: Position) -> None:
        log = self._folder / f"step-{position.number + 1}.log"
        self._say(f"\n== {position.heading(step)}\n$ hcp {shlex.join(step.command)}")
        self._say(f"It goes on beside the next steps (log: {log})")
        with log.open("wb") as handle:
            child = subprocess.Popen(hcp(step.command), stdout=handle, stderr=handle)
        self.callback(end, child)
        one = _Running(step, position.number, child, log, time.monotonic())
        self._running.append(one)
        self._follow(child, one)

    def watch(self, child: subprocess.Popen[bytes]) -> int:
        """Waits for the step in front and gives its exit code. One beside it that fails is heard of at once: what is
        in front might wait for what it does.
        """
        self._follow(child)
        while (ended := self._ended.get()) is not child:
            for one in self._running:
                if one.child is ended:
                    one.wait()
        return child.wait()

    def wait(self) -> None:
        while self._running:
            one = self._running.pop(0)
            if one.child.poll() is None:
                self._say(f"\n== Waiting for step {one.number + 1}: {one.step.title}")
            one.wait()
            self._laps.append((one.step.title, (one.until or time.monotonic()) - one.since))

    def _follow(self, child: subprocess.Popen[bytes], one: _Running | None = None) -> None:
        def wait() -> None:
            child.wait()
            if one is not None:
                one.until = time.monotonic()
            self._ended.put(child)

        threading.Thread(target=wait, daemon=True).start()
