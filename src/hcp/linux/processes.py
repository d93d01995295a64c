"""Which processes came out of which."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from pathlib import Path


def below(pid: int) -> list[int]:
    """All that a process started and what those started, parents first.

    Without what lost its parent already, and what was given a session of its own: that was made to go on.
    """
    started: dict[int, list[tuple[int, str]]] = defaultdict(list)
    sessions: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError):  # it ended while we look
                # The name in brackets may hold anything; after it come state, parent, process group and session.
                _, parent, _, session, *_ = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                sessions[int(entry.name)] = session
                started[int(parent)].append((int(entry.name), session))
    found = [pid]
    for one in found:
        found += [child for child, session in started[one] if session == sessions.get(pid)]
    return found[1:]
