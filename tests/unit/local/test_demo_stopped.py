"""A tour that is stopped takes everything along that it started: real processes, three deep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.eventually import eventually_sync

# A build as `hcp payload build` runs it. Its program starts another one, as Go does compilers, and does not end it; a
# shell makes it deaf to Ctrl-C, which Go does not.
BUILD = """
import sys
from pathlib import Path
from hcp.cli.engine.terminal import end_like_an_interrupt
from tests.support.unit.workshop import Workshop
end_like_an_interrupt()
folder = Path(sys.argv[1])
program = 'env --default-signal=INT sleep 3600 & echo $PPID $$ $! > "$0.part"; mv "$0.part" "$0"; wait'
workshop = Workshop(folder)
workshop.add("tool", during=lambda ctx: ctx.run(["sh", "-c", program, folder / "processes"]))
workshop.engine().ensure(["tool"])
"""
# Builds in the background, beside the steps, and of the step that is waited for.
TOUR = """
import sys
from pathlib import Path
from hcp.cli.engine.terminal import end_like_an_interrupt
from hcp.local.demo import beside, run
from hcp.local.demo.plan import Step, Tour
folder = Path(sys.argv[1])
run.hcp = beside.hcp = lambda words: [sys.executable, "-c", *words]
run.background = lambda _: [[sys.argv[2], str(folder / "background")]]
run.steps = lambda _: [
    Step("Beside", [sys.argv[2], str(folder / "beside")], beside=True),
    Step("Now", [sys.argv[2], str(folder / "now")]),
]
end_like_an_interrupt()
run.run(Tour("default", "demo", 2, folder), lambda text: print(text, flush=True))
"""
BUILDS = ("background", "beside", "now")


def alive(pid: int) -> bool:
    """Ended and not collected counts as ended: whoever inherits it may take its time."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def processes(folder: Path) -> list[int]:
    """The builds', as soon as all of them are there."""
    return [int(word) for name in BUILDS for word in (folder / name / "processes").read_text().split()]


@pytest.mark.parametrize("how", ["Ctrl-C", "told to end", "told twice"])
def test_nothing_goes_on_after_a_tour_was_stopped(tmp_path: Path, how: str) -> None:
    # A background job of a shell is deaf to Ctrl-C, and so would be what it starts.
    argv = ["env", "--default-signal=INT", sys.executable, "-c", TOUR, str(tmp_path), BUILD]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with (tmp_path / "said").open("w") as said:
        tour = subprocess.Popen(argv, env=environment, stdout=said, stderr=said, start_new_session=True)
    try:
        found = eventually_sync(lambda: processes(tmp_path), "three builds")
        assert all(map(alive, found)), (tmp_path / "said").read_text()
        if how == "Ctrl-C":
            os.killpg(tour.pid, signal.SIGINT)  # a terminal tells all of them
        else:
            tour.terminate()
        if how == "told twice":
            eventually_sync(lambda: not alive(found[-3]) or tour.poll() is not None, "the first to end")
            tour.terminate()  # nothing happens where it ended meanwhile
        tour.wait()
        eventually_sync(lambda: not any(map(alive, found)), "the end of all of them")
        assert "What was done stays." in (tmp_path / "said").read_text()
    finally:
        for pid in [tour.pid, *(found if "found" in locals() else [])]:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        tour.wait()
