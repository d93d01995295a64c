"""Printing a status for people and for programs."""

from __future__ import annotations

import json
from dataclasses import asdict

from hcp.local.status.status import Line, Status
from hcp.local.status.tables import table


def render(status: Status, output: str) -> str:
    if output == "json":
        return json.dumps({**asdict(status), "well": status.well}, indent=2) + "\n"
    parts = [f"Cluster {status.name} (profile {status.profile}) is {status.state} at {status.server}\n"]
    if status.lines:
        rows = [_row(line) for line in status.lines]
        parts.append(table(["COMPONENT", "VERSION", "PID", "MEMORY", "HEALTH"], rows))
    parts += [f"{note}\n" for note in status.notes]
    parts += [f"Wrong: {sentence}\n" for sentence in status.wrong] or ["Everything is well.\n"]
    return "\n".join(part for part in ("".join(parts[:1]), "".join(parts[1:2]), "".join(parts[2:])) if part)


def _row(line: Line) -> list[str]:
    memory = f"{line.memory / (1 << 20):.0f} MiB" if line.memory else "-"
    return [line.component, line.version or "-", str(line.pid or "-"), memory, line.health]
