"""Talking to a running supervisor, and telling whether one runs at all."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hcp.local.state.layout import Layout
from hcp.local.state.spec import write_file

_PF_EXITING = 0x4
_EXIT_SECONDS = 30.0
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Running:
    """The supervisor's process as the machine sees it."""

    pid: int
    started: str
    """Start time in clock ticks since boot: tells a process from a later one with the same pid."""


def remember(layout: Layout, pid: int) -> None:
    """Writes down which process the supervisor is."""
    facts = {"pid": pid, "started": start_time(pid), "boot": _boot_id()}
    write_file(layout.supervisor, json.dumps(facts) + "\n")


def running(layout: Layout) -> Running | None:
    """The supervisor, if it is alive: same boot, same pid, same start time."""
    try:
        facts = json.loads(layout.supervisor.read_text())
        pid, started = int(facts["pid"]), str(facts["started"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if facts.get("boot") != _boot_id() or not started or start_time(pid) != started:
        return None
    found = Running(pid, started)
    if _is_exiting(pid) and _gone(found, _EXIT_SECONDS):
        return None
    return found


def was_started(layout: Layout) -> bool:
    """Whether a supervisor was ever started and not ended by `down`."""
    return layout.supervisor.exists()


def start_time(pid: int) -> str:
    """Empty when there is no such process, or it is only waiting to be collected."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _is_exiting(pid: int) -> bool:
    """Killed, and only waiting for the processes of its pid namespace to end."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return True
    return bool(int(fields[6]) & _PF_EXITING)


def ask(layout: Layout, do: str, timeout: float = 5.0, **more: object) -> dict[str, Any] | None:
    """One request to the supervisor; nothing when it does not answer."""
    try:
        folder = os.open(layout.run, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout)
            # Through the open folder, because a Unix socket's path may have at most 107 bytes.
            connection.connect(f"/proc/self/fd/{folder}/{layout.socket.name}")
            connection.sendall(json.dumps({"do": do, **more}).encode() + b"\n")
            with connection.makefile("rb") as stream:
                line = stream.readline()
        answer = json.loads(line) if line else None
        return answer if isinstance(answer, dict) else None
    except (OSError, ValueError):
        return None
    finally:
        os.close(folder)


def stop(layout: Layout, patience: float = 60.0) -> bool:
    """Ends the supervisor and with it everything it started. Says whether one was running."""
    found = running(layout)
    if found is None:
        return False
    ask(layout, "stop")
    if not _gone(found, patience):
        with contextlib.suppress(ProcessLookupError):
            os.kill(found.pid, signal.SIGKILL)
        _gone(found, 30.0)
    return True


def _gone(found: Running, patience: float) -> bool:
    end = time.monotonic() + patience
    while start_time(found.pid) == found.started:
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""
