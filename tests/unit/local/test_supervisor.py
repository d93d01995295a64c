"""The supervisor with small real processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hcp.local.state.layout import Layout
from hcp.local.supervisor import control, processes
from hcp.local.supervisor.child import FIRST_BACKOFF, MAX_BACKOFF, STEADY_SECONDS, next_backoff
from hcp.local.supervisor.logs import RotatingLog
from hcp.local.supervisor.processes import Probe, Process

SLEEPER = [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(600)"]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path / ("deep" * 30) / "t")  # a path too long for a Unix socket
    made.make()
    return made


@pytest.fixture
async def start(layout: Layout) -> AsyncIterator[Any]:
    """Starts a supervisor as its own process, as `up` does, and ends it afterwards."""
    started: list[asyncio.subprocess.Process] = []

    async def begin(*wanted: Process) -> asyncio.subprocess.Process:
        layout.processes.write_text(processes.dump(list(wanted)))
        with (layout.logs / "supervisor.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "hcp.local.supervisor", str(layout.root), stdout=log, stderr=log
            )
        started.append(process)
        control.remember(layout, process.pid)
        await until(layout, lambda facts: True)
        return process

    yield begin
    for process in started:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def until(layout: Layout, check: Any) -> dict[str, Any]:
    async with asyncio.timeout(300):
        while True:
            facts = await asyncio.to_thread(control.ask, layout, "facts")
            if facts is not None and check(facts):
                return facts
            await asyncio.sleep(0.02)


def state(facts: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(item for item in facts["processes"] if item["name"] == name)
    return found


async def test_starts_in_order_and_keeps_logs(layout: Layout, start: Any) -> None:
    await start(Process("first", SLEEPER, version="1"), Process("second", SLEEPER, after=["first"]))
    facts = await until(layout, lambda f: all(item["state"] == "running" for item in f["processes"]))
    assert state(facts, "first")["version"] == "1"
    logs = [layout.logs / "first.log", layout.logs / "second.log"]
    await until(layout, lambda f: all(log.exists() and b"here" in log.read_bytes() for log in logs))


async def test_a_process_is_exchanged_alone_and_after_the_former_has_ended(layout: Layout, start: Any) -> None:
    await start(Process("first", SLEEPER, version="1"), Process("second", SLEEPER, after=["first"]))
    before = await until(layout, lambda f: all(item["state"] == "running" for item in f["processes"]))
    assert before["replaces"]
    wanted = processes.dump([Process("first", SLEEPER, version="2"), Process("second", SLEEPER, version="2")])
    await asyncio.to_thread(control.ask, layout, "replace", names=["first"], processes=wanted)
    after = await until(
        layout, lambda f: state(f, "first")["version"] == "2" and state(f, "first")["state"] == "running"
    )
    assert state(after, "first")["pid"] != state(before, "first")["pid"]
    assert not Path(f"/proc/{state(before, 'first')['pid']}").exists()
    assert state(after, "second") == state(before, "second"), "who was not named goes on"
    # The same once more is no other one.
    await asyncio.to_thread(control.ask, layout, "replace", names=["first"], processes=wanted)
    facts = await asyncio.to_thread(control.ask, layout, "facts")
    assert facts is not None
    assert state(facts, "first")["pid"] == state(after, "first")["pid"]


async def test_reloading_ends_what_is_not_wanted_any_more_and_starts_what_is_new(layout: Layout, start: Any) -> None:
    await start(Process("stays", SLEEPER), Process("goes", SLEEPER))
    before = await until(layout, lambda f: all(item["state"] == "running" for item in f["processes"]))
    layout.processes.write_text(processes.dump([Process("stays", SLEEPER), Process("comes", SLEEPER)]))
    await asyncio.to_thread(control.ask, layout, "reload")
    after = await until(layout, lambda f: all(item["state"] == "running" for item in f["processes"]))
    assert [item["name"] for item in after["processes"]] == ["stays", "comes"]
    assert state(after, "stays")["pid"] == state(before, "stays")["pid"]
    async with asyncio.timeout(30):
        while Path(f"/proc/{state(before, 'goes')['pid']}").exists():
            await asyncio.sleep(0.02)


async def test_restarts_what_is_killed_and_says_so(layout: Layout, start: Any) -> None:
    await start(Process("worker", SLEEPER))
    facts = await until(layout, lambda f: state(f, "worker")["state"] == "running")
    os.kill(state(facts, "worker")["pid"], signal.SIGKILL)
    crashed = await until(layout, lambda f: state(f, "worker")["state"] == "crashed")
    assert "SIGKILL" in state(crashed, "worker")["why"]
    again = await until(layout, lambda f: state(f, "worker")["state"] == "running")
    assert state(again, "worker")["restarts"] == 1
    assert state(again, "worker")["pid"] != state(facts, "worker")["pid"]


async def test_a_program_that_is_not_there_does_not_stop_the_others(layout: Layout, start: Any) -> None:
    await start(Process("missing", ["/no/such/program"]), Process("worker", SLEEPER))
    facts = await until(layout, lambda f: state(f, "missing")["restarts"] >= 1)
    assert "127" in state(facts, "missing")["why"]
    await until(layout, lambda f: state(f, "worker")["state"] == "running")


async def test_an_unwell_process_is_not_ready(layout: Layout, start: Any) -> None:
    await start(Process("deaf", SLEEPER, probe=Probe(socket="/no/such/socket")), Process("next", SLEEPER, ["deaf"]))
    facts = await until(layout, lambda f: state(f, "deaf")["why"])
    assert state(facts, "deaf")["state"] == "starting"
    assert state(facts, "next")["state"] == "waiting"


async def test_stop_ends_everything(layout: Layout, start: Any) -> None:
    stubborn = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    process = await start(
        Process("worker", SLEEPER), Process("stubborn", [sys.executable, "-c", stubborn], stop_seconds=0.3)
    )
    facts = await until(layout, lambda f: all(item["state"] == "running" for item in f["processes"]))
    pids = [item["pid"] for item in facts["processes"]]
    assert await asyncio.to_thread(control.stop, layout)
    await process.wait()
    assert not [pid for pid in pids if control.start_time(pid)]
    assert control.running(layout) is None
    assert not await asyncio.to_thread(control.stop, layout)


async def test_a_killed_supervisor_leaves_nothing_running(layout: Layout, start: Any) -> None:
    process = await start(Process("worker", SLEEPER))
    facts = await until(layout, lambda f: state(f, "worker")["state"] == "running")
    process.kill()
    await process.wait()
    async with asyncio.timeout(300):
        while control.start_time(state(facts, "worker")["pid"]):
            await asyncio.sleep(0.02)
    assert control.running(layout) is None
    assert control.was_started(layout)


def test_another_boot_is_not_running(layout: Layout) -> None:
    control.remember(layout, os.getpid())
    assert control.running(layout) is not None
    facts = json.loads(layout.supervisor.read_text())
    layout.supervisor.write_text(json.dumps({**facts, "boot": "another"}))
    assert control.running(layout) is None
    layout.supervisor.write_text(json.dumps({**facts, "started": "1"}))
    assert control.running(layout) is None
    layout.supervisor.write_text("garbage")
    assert control.running(layout) is None


def test_backoff_grows_and_forgets() -> None:
    assert next_backoff(0, 1) == FIRST_BACKOFF
    assert next_backoff(FIRST_BACKOFF, 1) == 2 * FIRST_BACKOFF
    assert next_backoff(MAX_BACKOFF, 1) == MAX_BACKOFF
    assert next_backoff(MAX_BACKOFF, STEADY_SECONDS) == FIRST_BACKOFF


def test_logs_rotate_and_stay_small(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "x.log", max_bytes=100, keep=2)
    for number in range(50):
        log.write(f"line {number:03d}\n".encode())
    log.close()
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"x.log", "x.log.1", "x.log.2"}
    assert all(size <= 100 for size in sizes.values())
    assert b"line 049" in (tmp_path / "x.log").read_bytes()


def test_a_reopened_log_is_continued(tmp_path: Path) -> None:
    for word in (b"one\n", b"two\n"):
        log = RotatingLog(tmp_path / "x.log")
        log.write(word)
        log.close()
    assert (tmp_path / "x.log").read_bytes() == b"one\ntwo\n"
