"""The README's commands, one after the other, as process 1 of the room."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

_TAIL = 25


@dataclass(frozen=True)
class Step:
    name: str
    command: str


@dataclass(frozen=True)
class Result:
    name: str
    command: str
    seconds: float
    code: int


_INSTALL = Step("install", "make install")
_DOWN = Step("down", ".venv/bin/hcp local down --purge")
_TESTS = (
    Step("lint", "make lint"),
    Step("unit", "make test-unit"),
    Step("integration", "make test-integration"),
    Step("security", "make test-security"),
)
_SMOKE = Step("smoke", "make test-smoke")
_BUILT = (
    Step("libraries", ".venv/bin/hcp payload check"),
    Step("timeline", ".venv/bin/hcp payload timeline --all"),
)
STEPS = (_INSTALL, *_TESTS, Step("demo", "make demo NODES=0"), _DOWN, _SMOKE, *_BUILT)
# The whole tour first, so that its time is what a new user waits.
COLD_STEPS = (_INSTALL, Step("demo", "make demo"), _DOWN, *_TESTS, _SMOKE, *_BUILT)


def run_all(steps: list[Step], folder: str, environment: dict[str, str], logs: int, results: IO[str]) -> None:
    """Runs every step in `folder`. A failed one does not stop the others, except that all need `install`.

    `logs` is an open folder of the machine, `results` gets one line per step that ended.
    """
    os.chdir(folder)
    for number, step in enumerate(steps, 1):
        name = f"{number}-{step.name}.log"
        log = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=logs)
        _say(f"{step.name}: {step.command}")
        began = time.monotonic()
        code = run_one(["/bin/sh", "-c", step.command], environment, log)
        result = Result(step.name, step.command, round(time.monotonic() - began, 1), code)
        results.write(json.dumps(asdict(result)) + "\n")
        results.flush()
        if code == 0:
            _say(f"{step.name}: done in {clock(result.seconds)}")
        else:
            _say(f"{step.name}: FAILED with {code} after {clock(result.seconds)}; the end of {name}:")
            print("\n".join(f"    {line}" for line in _tail(log)), flush=True)
        os.close(log)
        if code != 0 and step.name == "install":
            return


def run_one(argv: list[str], environment: dict[str, str], output: int) -> int:
    """Runs a command and, as every process 1 has to, buries whatever ends meanwhile."""
    child = os.fork()
    if child == 0:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        os.execve(argv[0], argv, environment)
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def _tail(log: int) -> list[str]:
    with os.fdopen(os.dup(log), "rb") as handle:
        handle.seek(0)
        return handle.read().decode(errors="replace").splitlines()[-_TAIL:]


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"


def table(results: list[Result]) -> str:
    rows = [("STEP", "COMMAND", "TIME", "RESULT")]
    rows += [(r.name, r.command, clock(r.seconds), "ok" if r.code == 0 else f"failed with {r.code}") for r in results]
    rows.append(("", "all", clock(sum(result.seconds for result in results)), ""))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def read_results(path: Path) -> list[Result]:
    return [Result(**json.loads(line)) for line in path.read_text().splitlines()]
