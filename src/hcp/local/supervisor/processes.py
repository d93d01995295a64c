"""What the supervisor reads: which processes, in which order, and how to tell that one is ready.

Plain data in a JSON file, so the supervisor knows nothing of Kubernetes and imports next to nothing.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Probe:
    """How to tell that a process does its work.

    `url`: answers 2xx (https with `ca`, optionally a client certificate); `socket`: a Unix socket that accepts.
    """

    url: str = ""
    socket: str = ""
    ca: str = ""
    cert: str = ""
    key: str = ""


@dataclass(frozen=True)
class Process:
    """One process to keep running."""

    name: str
    argv: list[str]
    after: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    probe: Probe | None = None
    version: str = ""
    stop_seconds: float = 5.0


def dump(processes: list[Process]) -> str:
    return json.dumps([asdict(process) for process in processes], indent=1) + "\n"


def parse(text: str) -> list[Process]:
    return [_process(item) for item in json.loads(text)]


def read(path: Path) -> list[Process]:
    return parse(path.read_text())


def _process(item: dict[str, Any]) -> Process:
    probe = item.pop("probe", None)
    return Process(**item, probe=Probe(**probe) if probe else None)
