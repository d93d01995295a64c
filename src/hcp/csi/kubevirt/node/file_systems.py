"""File systems on disks: found, made on empty ones only, repaired after a crash, grown."""

from __future__ import annotations

from pathlib import Path

from hcp.csi.errors import FailedPrecondition
from hcp.csi.kubevirt.access import DEFAULT_FILE_SYSTEM, FILE_SYSTEMS, MEBI
from hcp.csi.kubevirt.node.commands import CommandFailed, must, run

EXT = ("ext2", "ext3", "ext4")
_NOTHING_FOUND = 2
# e2fsck: nothing wrong, repaired, repaired (and a root disk would have to boot again).
_REPAIRED = (0, 1, 2)


async def on(disk: Path) -> str:
    """The file system, "" on a disk with nothing at all; anything else on it is nobody's to overwrite."""
    ended = await run("blkid", "-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", str(disk))
    if ended.code == _NOTHING_FOUND:
        return ""
    if ended.code:
        raise CommandFailed(f"It cannot be told what is on {disk}", cause=ended.err.strip() or f"code {ended.code}")
    found = dict(line.split("=", 1) for line in ended.out.splitlines() if "=" in line)
    kind = found.get("TYPE", "")
    if kind in (*EXT, *FILE_SYSTEMS):
        return kind
    if kind:
        raise FailedPrecondition(f"The disk {disk} has {kind} on it, no file system that is mounted here")
    raise FailedPrecondition(f"The disk {disk} has a partition table ({found.get('PTTYPE')}), no file system")


async def make(disk: Path, kind: str) -> None:
    kind = kind or DEFAULT_FILE_SYSTEM
    # No part is kept for root alone, and nothing is written that can be written later.
    options = ["-f"] if kind == "xfs" else ["-F", "-q", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1"]
    await must(f"mkfs.{kind}", *options, str(disk))


async def repair(disk: Path, kind: str) -> None:
    """As after a power cut; xfs does it itself when it is mounted."""
    if kind not in EXT:
        return
    ended = await run("e2fsck", "-p", str(disk))
    if ended.code not in _REPAIRED:
        raise FailedPrecondition(
            f"The file system on {disk} is damaged", cause=ended.out.strip(), hint="Run e2fsck by hand on the node."
        )


async def smaller_than(disk: Path, kind: str, size: int) -> bool:
    """Whether it leaves a part of its disk unused that is worth the work; xfs finds out by itself."""
    if kind not in EXT:
        return True
    told = await must("dumpe2fs", "-h", str(disk))
    facts = dict(line.split(":", 1) for line in told.splitlines() if ":" in line)
    return size - int(facts["Block count"]) * int(facts["Block size"]) > MEBI


async def grow(disk: Path, kind: str, mounted_at: Path) -> None:
    """To the size of its disk, while it is mounted."""
    if kind in EXT:
        await must("resize2fs", str(disk))
    elif kind == "xfs":
        await must("xfs_growfs", str(mounted_at))
    else:
        raise FailedPrecondition(f"A file system of type {kind} cannot be made larger")
