"""A cgroup of the room's own: clusters of the same name inside and outside must not meet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hcp.linux.syscalls import MS_NODEV, MS_NOEXEC, MS_NOSUID, mount
from hcp.local.host.checks import cgroup_controllers
from hcp.local.node import cgroups

# v1: where the machine's processes are in no cgroup, each of them counts as much as all of the room would with 1024.
_SHARES = "16384"
_ROOT = Path("/sys/fs/cgroup")
_FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC


def make(name: str) -> None:
    """Like a cluster's, but processes may be in it: v2 allows that only while its children get no controllers."""
    cgroups.make(name)
    for root in cgroup_controllers():
        control = root / name / "cgroup.subtree_control"
        if control.exists():
            for controller in control.read_text().split():
                control.write_text(f"-{controller}")
        shares = root / name / "cpu.shares"
        if shares.exists():
            shares.write_text(_SHARES)


def join(name: str) -> None:
    """Puts this process into the cgroup, in every hierarchy; a cgroup namespace made now begins there."""
    for root in cgroup_controllers():
        (root / name / "cgroup.procs").write_text(str(os.getpid()))


def remove(name: str) -> None:
    cgroups.remove(name)


def hierarchies() -> list[tuple[str, str, str]]:
    """(folder below /sys/fs/cgroup, type, options) of what is mounted there."""
    return list(parse_mounts(Path("/proc/self/mounts").read_text()))


def parse_mounts(mounts: str) -> Iterator[tuple[str, str, str]]:
    for line in mounts.splitlines():
        _, place, kind, options = line.split()[:4]
        if kind in ("cgroup", "cgroup2") and Path(place).is_relative_to(_ROOT):
            wanted = [word for word in options.split(",") if word not in ("rw", "ro", "relatime", *_IGNORED)]
            yield Path(place).relative_to(_ROOT).as_posix(), kind, ",".join(wanted) if kind == "cgroup" else ""


_IGNORED = ("nosuid", "nodev", "noexec", "xattr", "clone_children")


def mount_into(root: Path, found: list[tuple[str, str, str]]) -> None:
    """Shows the hierarchies in the room as if its own cgroup were their root."""
    base = root / "sys/fs/cgroup"
    if any(folder != "." for folder, _, _ in found):
        mount("tmpfs", str(base), "tmpfs", _FLAGS, "mode=755")
    for folder, kind, options in found:
        place = base / folder
        place.mkdir(exist_ok=True)
        named = f"none,{options}" if options.startswith("name=") else options
        mount(kind, str(place), kind, _FLAGS, named)


def leave_the_root() -> None:
    """v2: a cgroup with processes cannot give controllers to its children, so the room's first process moves down."""
    if (_ROOT / "cgroup.controllers").exists():
        leaf = _ROOT / "room"
        leaf.mkdir()
        (leaf / "cgroup.procs").write_text("1")
