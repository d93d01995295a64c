"""What is mounted where, read from the kernel each time: so a restart forgets nothing."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hcp.csi.kubevirt.node.commands import must

MOUNTINFO = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    point: str
    # `major:minor` of the file system's disk.
    device: str
    # What of that file system is mounted here.
    root: str
    file_system: str
    options: tuple[str, ...]


def parse(text: str) -> list[Mount]:
    """Lines of mountinfo, in order: of two mounts on one place the later one is on top."""
    found = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        fields, behind = left.split(), right.split()
        if len(fields) >= 6 and behind:
            found.append(Mount(_plain(fields[4]), fields[2], _plain(fields[3]), behind[0], tuple(fields[5].split(","))))
    return found


def _plain(word: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), word)


def at_point(path: Path) -> Mount | None:
    """What is mounted exactly there, the topmost."""
    wanted = os.path.realpath(path)
    found = [one for one in parse(MOUNTINFO.read_text()) if one.point == wanted]
    return found[-1] if found else None


def elsewhere(found: Mount, *known: Path) -> list[str]:
    """Where else the same file system is."""
    places = {os.path.realpath(path) for path in known}
    same = [one.point for one in parse(MOUNTINFO.read_text()) if one.device == found.device]
    return [point for point in same if point not in places]


def of_node(disk: Path) -> list[str]:
    """Where a disk itself is, as a file."""
    found = [one for one in parse(MOUNTINFO.read_text()) if one.file_system in ("devtmpfs", "tmpfs")]
    return [one.point for one in found if one.root == f"/{disk.name}"]


async def mount(disk: Path, target: Path, file_system: str, options: Sequence[str]) -> None:
    words = ["mount", "-t", file_system]
    if options:
        words += ["-o", ",".join(options)]
    await must(*words, str(disk), str(target))


async def bind(source: Path, target: Path, *, read_only: bool) -> None:
    """One step when it may be written; else a second one that takes that away."""
    await must("mount", "--bind", str(source), str(target))
    if read_only:
        await must("mount", "-o", "remount,bind,ro", str(target))


async def unmount(target: Path) -> None:
    """Everything that is mounted there; nothing is fine too."""
    while at_point(target) is not None:
        await must("umount", str(target))


def folder(target: Path) -> None:
    """A place to mount a file system on."""
    target.mkdir(parents=True, exist_ok=True)


def file(target: Path) -> None:
    """A place to mount a single disk on."""
    folder(target.parent)
    target.touch(exist_ok=True)


def is_folder(path: Path) -> bool:
    return path.is_dir()


def remove(target: Path) -> None:
    """The empty place where something was mounted."""
    with contextlib.suppress(FileNotFoundError):
        if target.is_dir() and not target.is_symlink():
            target.rmdir()
        else:
            target.unlink()
