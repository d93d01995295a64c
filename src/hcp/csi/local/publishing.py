"""A volume at the place where the kubelet wants it: a folder mounted there, or a block device."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hcp.csi.errors import InvalidArgument
from hcp.csi.local.pool import Pool
from hcp.csi.local.records import Volume
from hcp.linux import loop, mounts


def flags_of(options: list[str], *, read_only: bool) -> int:
    """Mount options of a class or claim, of which only those can be that a further mount can have."""
    flags = mounts.FLAGS["ro"] if read_only else 0
    for word in options:
        if word not in mounts.FLAGS and word not in ("rw", "defaults"):
            raise InvalidArgument(
                f"The mount option {word!a} cannot be had here", hint=f"Possible are {', '.join(sorted(mounts.FLAGS))}."
            )
        flags |= mounts.FLAGS.get(word, 0)
    return flags


def elsewhere(pool: Pool, volume: Volume, target: Path) -> Path | None:
    """Another place than the target where a volume is."""
    device = loop.of_file(pool.disk(volume)) if volume.block else None
    here = Path(os.path.realpath(target))
    for item in mounts.mounted():
        if item.point != here and (_is_device(item, device.path) if device else _is_folder(item, volume)):
            return item.point
    return None


def _is_folder(item: mounts.Mount, volume: Volume) -> bool:
    return item.kind == "btrfs" and item.root.endswith(f"/volumes/{volume.id}")


def _is_device(item: mounts.Mount, device: Path) -> bool:
    """In the file system that holds /dev the root of the mount is the name of the device."""
    return item.root == f"/{device.name}" and item.kind in ("tmpfs", "devtmpfs")


def publish_folder(pool: Pool, volume: Volume, target: Path, flags: int) -> None:
    found = mounts.at(target)
    if found is not None:
        if _is_folder(found, volume):
            return
        mounts.leave(target)  # something else: the kubelet keeps this path for us alone
    target.mkdir(parents=True, exist_ok=True)
    mounts.bind(pool.tree(volume), target, flags)


def publish_device(pool: Pool, volume: Volume, target: Path) -> None:
    device = _device(pool, volume)
    number = device.stat().st_rdev
    found = target.stat() if target.exists() else None
    if found is not None and stat.S_ISBLK(found.st_mode):
        if found.st_rdev == number:
            return
        mounts.leave(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch()
    mounts.bind(device, target)


def _device(pool: Pool, volume: Volume) -> Path:
    """The one device of a block volume: everybody on the node shares it.

    Machines open it past the device's page cache, so that of the file is the only one. Past that too, each write would
    wait for the disk. What was flushed is on the disk either way.
    """
    disk = pool.disk(volume)
    found = loop.of_file(disk)
    if found is not None:
        return found.path
    opened, device = loop.attach(disk, stay=True, label=pool.label, cached=True)
    os.close(opened)
    return device


def unpublish(pool: Pool, volume: Volume | None, target: Path) -> None:
    mounts.leave(target)
    if target.is_dir() and not target.is_symlink():
        target.rmdir()
    else:
        target.unlink(missing_ok=True)
    if volume is None or not volume.block or not pool.disk(volume).exists():
        return
    device = loop.of_file(pool.disk(volume))
    if device is not None and elsewhere(pool, volume, target) is None:
        loop.detach(device.path)
