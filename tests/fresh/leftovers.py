"""What a room can leave outside of itself when it is ended at a bad moment, and taking it back."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

from tests.fresh import cgroups

from hcp import payload
from hcp.errors import HcpError
from hcp.local.host import machine
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout

PREFIX = "hcp-fresh-"
LOCK = "lock"


def remove_room(folder: Path) -> None:
    """Rules of clusters that were up in the room, its cgroup, its files. Nothing may run in it any more."""
    tools = payload.find("node-tools")
    for path in sorted((folder / "root" / "var" / "lib" / "hcp").glob("*/cluster.json")):
        try:
            spec = specs.load(Layout(path.parent))
        except HcpError:
            continue
        if spec is not None and spec.has_node:
            machine.remove_rules(spec, [tools] if tools else [])
    cgroups.remove(folder.name)
    machine.release_settings(folder.name)
    shutil.rmtree(folder, ignore_errors=True)


def sweep(parent: Path) -> None:
    """Removes rooms whose maker was killed; one that is in use holds its lock."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            handle = (folder / LOCK).open("ab")
        except OSError:
            continue
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            remove_room(folder)
