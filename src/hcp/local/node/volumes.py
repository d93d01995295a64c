"""Volumes of a cluster live on a file system of fixed size, in one file, so that they cannot fill the machine's disk.

It is btrfs, because there every volume can be given its own bound without quota formats that kernels leave out, and
because one mount serves all of them: the provisioner makes a subvolume for each claim, and a volume that is full is
full for its owner alone. The file is sparse: it takes what the volumes hold, and gives back what they no longer hold.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from hcp.errors import HcpError
from hcp.linux import loop
from hcp.linux.syscalls import MS_NOATIME, MS_NODEV, MS_NOSUID, mount
from hcp.local.state.layout import Layout

LEAST = 1 << 30
_SHARE = 0.75
"""Of what is free when the cluster is made; the rest stays the machine's."""
_QUOTA_CONTROL = 0xC0109428  # BTRFS_IOC_QUOTA_CTL
_SIMPLE, _FULL = 4, 1
_RELEASE_SECONDS = 60.0


def check(layout: Layout, size: int | None, *, has_node: bool) -> None:
    """Refuses a size that the cluster cannot have (any more)."""
    if size is None:
        return
    if not has_node:
        raise HcpError("--volumes is for clusters with a node", hint="A cluster of profile api has no volumes.")
    if layout.volumes.exists() and (found := layout.volumes.stat().st_size) != size:
        raise HcpError(
            f"The volumes of cluster '{layout.root.name}' have {found / (1 << 30):.1f} GiB since it was made",
            hint=f"Leave --volumes out, or start anew: hcp local down --name {layout.root.name} --purge",
        )
    if size < LEAST:
        raise HcpError(
            f"{size / (1 << 20):.0f} MiB for all volumes are too few", hint=f"Give at least --volumes {LEAST >> 30}Gi."
        )


def prepare(layout: Layout, mkfs: Path, size: int | None, say: Callable[[str], None]) -> None:
    """Makes the file system once. Where it cannot be, volumes are plain folders, and that is said."""
    if layout.volumes.exists():
        return
    older = any((layout.var / "lib" / "storage").glob("*"))
    why = "the cluster was made so" if older else missing()
    if not why:
        _make(layout, mkfs, size or int(shutil.disk_usage(layout.root).free * _SHARE))
        return
    if size is not None:
        raise HcpError(f"Volumes cannot be bounded here: {why}", hint="Leave --volumes out: volumes are folders then.")
    say(f"Warning: volumes are folders on the machine's disk, and nothing bounds what they hold: {why}")


def missing() -> str:
    """What the kernel lacks, tried out; empty when there is all that is needed."""
    for module in ("loop", "btrfs"):
        if shutil.which("modprobe"):
            subprocess.run(["modprobe", "-q", module], check=False, capture_output=True)
    if "\tbtrfs\n" not in Path("/proc/filesystems").read_text():
        return "the kernel has no btrfs"
    if not Path("/dev/loop-control").exists():
        return "the kernel has no loop devices, or this container is not given them"
    return ""


def _make(layout: Layout, mkfs: Path, size: int) -> None:
    unfinished = layout.volumes.with_suffix(".new")
    with unfinished.open("wb") as file:
        file.truncate(size)
    unfinished.chmod(0o600)
    # One copy of everything: it lies in a file, and below it is whatever the machine does about broken disks.
    argv = [str(mkfs), "--quiet", "--metadata", "single", "--data", "single", str(unfinished)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        unfinished.unlink()
        raise HcpError("The file system for volumes could not be made", cause=done.stderr.strip())
    unfinished.replace(layout.volumes)


def mount_pool(image: Path, folder: Path) -> None:
    """In the node's mount namespace; it goes with the namespace, and the loop device with the last mount.

    All nodes of a cluster mount the same device: two devices for one file would destroy what is in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    opened, device = _device(image)
    try:
        # Written in place: disks of machines and databases do that all the time, and copies would scatter them.
        flags = MS_NOSUID | MS_NODEV | MS_NOATIME
        mount(str(device), str(folder), "btrfs", flags, "nodatacow,discard=async")
    finally:
        os.close(opened)
    folder.chmod(0o755)
    _account(folder)


def _device(image: Path) -> tuple[int, Path]:
    found = loop.of_file(image)
    if found is None:
        return loop.attach(image)
    return os.open(found.path, os.O_RDWR | os.O_CLOEXEC), found.path


def _account(folder: Path) -> None:
    """Counts what each subvolume holds; the cheap way where the kernel (6.7) knows it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.ioctl(descriptor, _QUOTA_CONTROL, struct.pack("=QQ", _SIMPLE, 0))
        except OSError:
            fcntl.ioctl(descriptor, _QUOTA_CONTROL, struct.pack("=QQ", _FULL, 0))
    finally:
        os.close(descriptor)


def wait_released(layout: Layout) -> None:
    """Until the kernel has let go of the file: mounted twice it would be destroyed."""
    end = time.monotonic() + _RELEASE_SECONDS
    while held := loop.holders(layout.volumes):
        if time.monotonic() > end:
            raise HcpError(
                f"The volumes of cluster '{layout.root.name}' are still in use",
                cause=f"{', '.join(held)} holds {layout.volumes}",
                hint="A process that was started inside the cluster goes on; end it and try again.",
            )
        time.sleep(0.05)
