"""Runs the tour and says, all the time, what is usable and what is coming."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from hcp.errors import HcpError
from hcp.local.demo import summary, volumes
from hcp.local.demo.beside import Beside
from hcp.local.demo.children import end, hcp
from hcp.local.demo.plan import Step, Tour, background, steps, urgent
from hcp.local.demo.position import Position
from hcp.local.demo.workload import Workload, first_node
from hcp.payload import fetching, find, go_cache, timeline
from hcp.payload.store import Store, cache_root

Say = Callable[[str], None]


def run(tour: Tour, say: Say) -> None:
    tour.folder.mkdir(parents=True, exist_ok=True)
    tour = replace(tour, volumes=bool(tour.nodes) and volumes.there())
    if not tour.build and _something_missing(tour):
        reachable = fetching.anything_reachable(say)  # known for all steps: none of them asks again
        tour = replace(tour, build=not reachable, fetches=reachable)
    if not tour.pull_secret.exists():
        tour.pull_secret.write_text('{"auths": {}}\n')  # the embedded registry asks for no credentials
    laps: list[tuple[str, float]] = []
    began = time.time()
    todo = steps(tour)
    number = 0
    try:
        # What one step fetches and compiles stays for the next. Parts that are needed last use what the first steps
        # leave idle: time in which they wait for a server, or link with one core.
        with go_cache.keeping(Store()), _building(tour, say) as builds, Beside(tour.folder, say, laps) as beside:
            for number, step in enumerate(todo):
                if step.needs_build:
                    _await_build(builds[0], tour, say, laps)
                if step.needs_beside:
                    beside.enough()
                if step.beside:
                    beside.start(step, Position(number, todo))
                else:
                    _step(step, say, laps, Position(number, todo), beside)
            beside.wait()
        if tour.nodes:
            started = time.monotonic()
            say("\n== A web workload behind a load balancer address")
            say(Workload(tour.guest).show())
            laps.append(("A web workload answers", time.monotonic() - started))
    except KeyboardInterrupt:
        say(summary.stopped(tour, number + 1, len(todo), todo[number].title))
        raise
    if built := timeline.kept(cache_root(), since=began):
        say(f"\n== What was built\n{timeline.text(built)}")
    node = first_node(tour.guest) if tour.nodes else ""
    say(summary.report(tour, laps, node, "" if tour.volumes else volumes.how_to_have_them()))


def _something_missing(tour: Tour) -> bool:
    return any(find(part) is None for step in steps(tour) for part in step.parts)


def _step(
    step: Step, say: Say, laps: list[tuple[str, float]], position: Position, beside: Beside | None = None
) -> None:
    if step.known and _succeeds(step.known):
        say(f"\n== {position.heading(step)}\nThere already, from an earlier run: hcp {shlex.join(step.known)}")
        return
    to = f" > {shlex.quote(str(step.save))}" if step.save else ""
    say(f"\n== {position.heading(step)}\n$ hcp {shlex.join(step.command)}{to}")
    started = time.monotonic()
    with _output(step.save) as out:
        child = subprocess.Popen(hcp(step.command), stdout=out)
        try:
            code = beside.watch(child) if beside else child.wait()
        finally:
            end(child)
    if code:
        raise HcpError(
            f"Step {position.number + 1}, '{step.title}', ended with exit code {code}",
            hint="The lines above say why. What was done stays: run `make demo` again and it continues here.",
        )
    laps.append((step.title, time.monotonic() - started))
    if step.usable:
        say(f"Usable now: {step.usable}")


def _succeeds(command: Sequence[str]) -> bool:
    asked = subprocess.run(hcp(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return asked.returncode == 0


@contextlib.contextmanager
def _output(path: Path | None) -> Iterator[IO[str] | None]:
    if path is None:
        yield None
        return
    with path.open("w") as handle:
        path.chmod(0o600)
        yield handle


@contextlib.contextmanager
def _building(tour: Tour, say: Say) -> Iterator[list[subprocess.Popen[bytes]]]:
    """What later steps need, built beside the first ones; ended with us, and continued by the next run."""
    log = tour.folder / "build.log"
    if tour.nodes:
        say(f"Coming: virtual machines; their parts are built in the background (log: {log})")
    with contextlib.ExitStack() as stack:
        children = []
        # What comes next on the screen goes first: the background takes what is left of the machine.
        behind = [["nice", *hcp(command)] for command in background(tour)]
        for words in [*behind, *map(hcp, urgent(tour))]:
            with log.open("ab") as handle:
                child = subprocess.Popen(words, stdout=handle, stderr=handle)
            stack.callback(end, child)
            children.append(child)
        yield children


def _await_build(build: subprocess.Popen[bytes], tour: Tour, say: Say, laps: list[tuple[str, float]]) -> None:
    if build.poll() is None:
        say("\n== Waiting for the parts of virtual machines to be built")
    started = time.monotonic()
    if build.wait():
        log = (tour.folder / "build.log").read_text(errors="replace").strip().splitlines()
        raise HcpError(
            "The parts of virtual machines could not be built",
            cause=" ".join(log[-3:]),
            hint="What was built stays: run `make demo` again and it continues here.",
        )
    laps.append(("Waiting for builds", time.monotonic() - started))
