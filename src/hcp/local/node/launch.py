"""Starting the supervisor so that it outlives the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from hcp.errors import HcpError
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import Node
from hcp.local.supervisor import control

_ANSWER_SECONDS = 120.0  # a busy machine takes its time; a supervisor that ended is noticed at once


def launch(layout: Layout, node: Node | None, pool: Path, tools: list[Path]) -> None:
    """Starts a supervisor, that of a node in namespaces, and returns once it answers. One must not be running.

    `tools` are artifacts whose `bin` and `lib` the processes of a node need.
    """
    layout.socket.unlink(missing_ok=True)
    if node is not None:
        from hcp.local.node.namespaces import start_in_namespaces

        pid = start_in_namespaces(layout, node, pool, tools)
    else:
        pid = _start_plain(layout)
    control.remember(layout, pid)
    end = time.monotonic() + _ANSWER_SECONDS
    while control.ask(layout, "facts") is None:
        if control.running(layout) is None or time.monotonic() > end:
            raise HcpError(
                f"The supervisor of {f'node {node.name}' if node else 'the cluster'} did not start",
                cause=last_line(layout.logs / "supervisor.log"),
                hint=f"See {layout.logs / 'supervisor.log'}",
            )
        time.sleep(0.02)


def supervisor_argv(layout: Layout) -> list[str]:
    return [sys.executable, "-X", "frozen_modules=on", "-m", "hcp.local.supervisor", str(layout.root)]


def _start_plain(layout: Layout) -> int:
    with (layout.logs / "supervisor.log").open("ab") as log:
        process = subprocess.Popen(
            supervisor_argv(layout),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    process.returncode = 0  # not ours to wait for: it outlives us
    return process.pid


def last_line(path: Path) -> str:
    try:
        lines = path.read_text(errors="replace").strip().splitlines()
    except OSError:
        return "it left no log"
    return lines[-1] if lines else "it said nothing"
