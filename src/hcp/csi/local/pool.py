"""Volumes and snapshots on a btrfs: each is a subvolume, and a record that says what it is.

Every step can be repeated: what a killed process left half made has no record, and is made anew.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from hcp.csi.errors import FailedPrecondition, OutOfRange
from hcp.csi.local.records import Record, Records, Snapshot, Volume, is_id
from hcp.errors import HcpError
from hcp.linux import btrfs, loop, mounts

_DISK = "disk"


class Pool:
    """`folder` lies on the btrfs; `label` marks the loop devices of block volumes."""

    def __init__(self, folder: Path, label: str) -> None:
        self.folder = folder
        self.label = label
        self.volumes = Records(folder / "records" / "volumes", Volume)
        self.snapshots = Records(folder / "records" / "snapshots", Snapshot)

    def prepare(self) -> None:
        """Looks whether volumes can be here at all."""
        for name in ("volumes", "snapshots"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)  # what is in volumes is for those who have them
        probe = self.folder / "volumes" / ".probe"
        try:
            if btrfs.is_subvolume(probe):
                btrfs.destroy(probe)
            btrfs.create(probe)
            btrfs.bound(probe, 1 << 20)
            btrfs.destroy(probe)
        except OSError as error:
            raise HcpError(
                f"There can be no volumes in {self.folder}",
                cause=error.strerror,
                hint="It has to be a btrfs with quotas, and the driver needs the right to administer it.",
            ) from error

    def room(self) -> tuple[int, int]:
        """All bytes there are, and those that are free."""
        facts = os.statvfs(self.folder)
        return facts.f_blocks * facts.f_frsize, facts.f_bavail * facts.f_frsize

    def tree(self, record: Volume | Snapshot) -> Path:
        return self.folder / ("volumes" if isinstance(record, Volume) else "snapshots") / record.id

    def disk(self, volume: Volume) -> Path:
        return self.tree(volume) / _DISK

    def create(self, volume: Volume, source: Volume | Snapshot | None) -> None:
        total, _ = self.room()
        if volume.size > total:
            raise OutOfRange(
                f"A volume of {volume.size} bytes is more than all the room there is ({total} bytes)",
                hint="Ask for less, or make the cluster with more: hcp local up --volumes SIZE.",
            )
        tree = self.tree(volume)
        if btrfs.is_subvolume(tree):
            btrfs.destroy(tree)  # of a process that was killed
        if source is not None:
            btrfs.snapshot(self.tree(source), tree, read_only=False)
        else:
            btrfs.create(tree)
            tree.chmod(0o700 if volume.block else 0o777)
        self._size(volume)
        self.volumes.put(volume)

    def grow(self, volume: Volume, size: int) -> Volume:
        """Also while it is in use: whoever has it sees it grow."""
        grown = replace(volume, size=size)
        self._size(grown)
        if volume.block and (device := loop.of_file(self.disk(volume))) is not None:
            loop.refresh(device.path)
        self.volumes.put(grown)
        return grown

    def _size(self, volume: Volume) -> None:
        if not volume.block:
            # What the file system itself writes down about the files counts too; the claim is for its user alone.
            btrfs.bound(self.tree(volume), volume.size + volume.size // 32 + (16 << 20))
            return
        with self.disk(volume).open("ab") as file:
            file.truncate(volume.size)
        self.disk(volume).chmod(0o600)

    def delete(self, volume_id: str) -> None:
        if not is_id(volume_id):
            return
        tree = self.folder / "volumes" / volume_id
        if btrfs.is_subvolume(tree):
            if where := self._used_at(tree):
                raise FailedPrecondition(
                    f"Volume {volume_id} is still in use", cause=f"at {where}", hint="It can be deleted when it is not."
                )
            btrfs.destroy(tree)
        self.volumes.remove(volume_id)

    def _used_at(self, tree: Path) -> str:
        """Where a volume is mounted or attached; empty if nowhere."""
        ending = f"/volumes/{tree.name}"
        for item in mounts.mounted():
            if item.kind == "btrfs" and item.root.endswith(ending):
                return str(item.point)
        disk = tree / _DISK
        device = loop.of_file(disk) if disk.is_file() else None
        return str(device.path) if device is not None and device.label == loop.short(self.label) else ""

    def take(self, snapshot_id: str, name: str, volume: Volume) -> Snapshot:
        made = Snapshot(snapshot_id, name, volume.id, volume.size, volume.block, time.time())
        tree = self.tree(made)
        if btrfs.is_subvolume(tree):
            btrfs.destroy(tree)
        btrfs.snapshot(self.tree(volume), tree, read_only=True)
        self.snapshots.put(made)
        return made

    def drop(self, snapshot_id: str) -> None:
        if not is_id(snapshot_id):
            return
        tree = self.folder / "snapshots" / snapshot_id
        if btrfs.is_subvolume(tree):
            btrfs.destroy(tree)
        self.snapshots.remove(snapshot_id)


def page(records: list[Record], token: str, most: int) -> tuple[list[Record], str]:
    """Some records after a token, and the token of the next page. The token is the last id that was given."""
    rest = [record for record in records if record.id > token]
    shown = rest[:most] if most else rest
    return shown, shown[-1].id if len(shown) < len(rest) else ""
