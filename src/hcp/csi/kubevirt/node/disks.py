"""Finding a disk by its serial number, straight from the kernel: no udev rules and no names that change."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

# A disk that was just plugged in appears a moment after the infra cluster says so, and grows a moment after it says so.
# The kernel's list of disks cannot be watched.
PATIENCE = 30.0
_LOOK_EVERY = 0.05
_SECTOR = 512


@dataclass(frozen=True)
class Disks:
    """What the kernel shows; tests give other folders."""

    sys: Path = Path("/sys")
    dev: Path = Path("/dev")
    patience: float = PATIENCE

    def find(self, serial: str) -> Path | None:
        for disk in sorted((self.sys / "block").iterdir()):
            if serial_of(disk) == serial:
                return self.dev / disk.name
        return None

    async def wait(self, serial: str) -> Path | None:
        """The disk, as soon as it is there."""
        for _ in range(max(int(self.patience / _LOOK_EVERY), 1)):
            if (found := self.find(serial)) is not None:
                return found
            await asyncio.sleep(_LOOK_EVERY)
        return self.find(serial)

    def size(self, disk: Path) -> int:
        return int((self.sys / "block" / disk.name / "size").read_text()) * _SECTOR

    async def wait_for_size(self, disk: Path, least: int) -> int:
        """Its size, once it has grown enough, or as it is in the end."""
        for _ in range(max(int(self.patience / _LOOK_EVERY), 1)):
            if self.size(disk) >= least:
                break
            await asyncio.sleep(_LOOK_EVERY)
        return self.size(disk)

    def number(self, disk: Path) -> str:
        """`major:minor`, as mounts name it."""
        return (self.sys / "block" / disk.name / "dev").read_text().strip()

    def by_number(self, number: str) -> Path | None:
        for disk in (self.sys / "block").iterdir():
            if (self.sys / "block" / disk.name / "dev").read_text().strip() == number:
                return self.dev / disk.name
        return None


def serial_of(disk: Path) -> str:
    """virtio block tells it as text; SCSI in a page of its own, behind four bytes of header."""
    try:
        return (disk / "serial").read_text().strip()
    except OSError:
        pass
    try:
        page = (disk / "device" / "vpd_pg80").read_bytes()
    except OSError:
        return ""
    return page[4 : 4 + int.from_bytes(page[2:4], "big")].decode("ascii", "replace").strip("\0 ")
