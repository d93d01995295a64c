"""What is mounted where, and mounting it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from hcp.linux.syscalls import (
    MS_BIND,
    MS_NOATIME,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    MS_REMOUNT,
    UMOUNT_NOFOLLOW,
    mount,
    unmount,
)

_TABLE = Path("/proc/self/mountinfo")
# Words that may stand in a class's mount options for a mount of something that is mounted already.
FLAGS = {"ro": MS_RDONLY, "nosuid": MS_NOSUID, "nodev": MS_NODEV, "noexec": MS_NOEXEC, "noatime": MS_NOATIME}
_KEPT = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME


@dataclass(frozen=True)
class Mount:
    root: str
    """The folder of the file system that is seen there."""
    point: Path
    kind: str
    source: str
    options: frozenset[str]


def parse(text: str) -> list[Mount]:
    found = []
    for line in text.splitlines():
        words = line.split(" ")
        dash = words.index("-")
        found.append(
            Mount(
                _plain(words[3]),
                Path(_plain(words[4])),
                words[dash + 1],
                _plain(words[dash + 2]),
                frozenset(words[5].split(",")),
            )
        )
    return found


def mounted() -> list[Mount]:
    return parse(_TABLE.read_text())


def at(path: Path) -> Mount | None:
    """What is mounted at a path itself, the last one if there are several."""
    wanted = Path(os.path.realpath(path))
    return next((item for item in reversed(mounted()) if item.point == wanted), None)


def bind(source: Path, target: Path, flags: int = 0) -> None:
    """The same file or folder at a second place. The kernel takes further flags only in a second step."""
    mount(str(source), str(target), flags=MS_BIND)
    if flags:
        kept = os.statvfs(target).f_flag & _KEPT
        mount("none", str(target), flags=MS_BIND | MS_REMOUNT | kept | flags)


def leave(target: Path) -> None:
    """Takes away all that is mounted at a path."""
    while at(target) is not None:
        unmount(str(target), UMOUNT_NOFOLLOW)


def _plain(word: str) -> str:
    """Spaces and the like are written as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), word)
