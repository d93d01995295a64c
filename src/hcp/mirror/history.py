"""Which blobs went into archives, run by run: what makes the next archive small."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from hcp.errors import HcpError
from hcp.mirror.workspace import Workspace, now

PREFIX = ".history-"


def day(text: str) -> str:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).strftime("%Y-%m-%d")
    except ValueError:
        raise HcpError(f'--since "{text}" is no day', hint="write it as yyyy-mm-dd, such as 2026-11-16") from None


def known(workspace: Workspace, since: str = "") -> set[str]:
    """What earlier archives have: up to the last run, or up to the last one before a day."""
    files = _files(workspace)
    if since:
        files = [path for path in files if path.name.removeprefix(PREFIX)[:10] < since]
    return set(files[-1].read_text().split()) if files else set()


def remember(workspace: Workspace, digests: set[str]) -> None:
    everything = digests | known(workspace)
    workspace.write(workspace.history / f"{PREFIX}{now()}", "\n".join(sorted(everything)) + "\n")


def _files(workspace: Workspace) -> list[Path]:
    return sorted(workspace.history.glob(f"{PREFIX}*")) if workspace.history.is_dir() else []
