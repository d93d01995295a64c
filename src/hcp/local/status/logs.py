"""Reading the logs of supervised processes."""

from __future__ import annotations

import sys
import time
from collections import deque
from pathlib import Path

from hcp.errors import HcpError
from hcp.local.state.lookup import existing
from hcp.local.state.nodes import find

_POLL_SECONDS = 0.3


def show(name: str, component: str, node: str = "", *, follow: bool, tail: int) -> None:
    layout, spec = existing(name)
    if node:
        layout = find(spec, node).layout(layout)
    known = sorted(path.stem for path in layout.logs.glob("*.log"))
    if not component:
        print("\n".join(known))
        return
    path = layout.logs / f"{component}.log"
    if component not in known:
        raise HcpError(
            f"Cluster '{name}' has no process '{component}'",
            hint=f"There are: {', '.join(known)}" if known else f"hcp local up --name {name} starts the processes.",
        )
    position = _print_tail(path, tail)
    while follow:
        time.sleep(_POLL_SECONDS)
        position = _print_new(path, position)


def _print_tail(path: Path, tail: int) -> int:
    """Prints the last lines and says how far it read."""
    with path.open("rb") as log:
        lines = log if tail < 0 else deque(log, maxlen=tail)
        for line in lines:
            sys.stdout.buffer.write(line)
        sys.stdout.flush()
        return log.tell()


def _print_new(path: Path, position: int) -> int:
    try:
        if path.stat().st_size < position:
            position = 0  # rotated: the new file starts at its beginning
        with path.open("rb") as log:
            log.seek(position)
            sys.stdout.buffer.write(log.read())
            sys.stdout.flush()
            return log.tell()
    except FileNotFoundError:
        return 0
