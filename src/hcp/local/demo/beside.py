"""Steps that go on while later ones are done: most of what they do is waiting."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
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


class Beside(contextlib.ExitStack):
    """What was started and not waited for yet. It ends with the tour."""

    def __init__(self, folder: Path, say: Callable[[str], None], laps: list[tuple[str, float]]) -> None:
        super().__init__()
        self._folder, self._say, self._laps = folder, say, laps
        self._running: list[_Running] = []

    def start(self, step: Step, position: Position) -> None:
        log = self._folder / f"step-{position.number + 1}.log"
        self._say(f"\n== {position.heading(step)}\n$ hcp {shlex.join(step.command)}")
        self._say(f"It goes on beside the next steps (log: {log})")
        with log.open("wb") as handle:
            child = subprocess.Popen(hcp(step.command), stdout=handle, stderr=handle)
        self.callback(end, child)
        self._running.append(_Running(step, position.number, child, log, time.monotonic()))

    def wait(self) -> None:
        while self._running:
            one = self._running.pop(0)
            if one.child.poll() is None:
                self._say(f"\n== Waiting for step {one.number + 1}: {one.step.title}")
            if code := one.child.wait():
                said = one.log.read_text(errors="replace").strip().splitlines()
                raise HcpError(
                    f"Step {one.number + 1}, '{one.step.title}', ended with exit code {code}",
                    cause=" ".join(said[-3:]),
                    hint="What was done stays: run `make demo` again and it continues here.",
                )
            self._laps.append((one.step.title, time.monotonic() - one.since))
