"""A btrfs as an embedded node has one for its volumes, on the machine of the test; needs root."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hcp import payload
from hcp.linux.syscalls import unmount
from hcp.local.node.volumes import missing, mount_pool

SIZE = 2 << 30


@contextmanager
def btrfs_pool(folder: Path) -> Iterator[Path]:
    if why := missing():
        pytest.skip(f"volumes cannot be bounded here: {why}")
    image, point = folder / "pool.img", folder / "pool"
    with image.open("wb") as file:
        file.truncate(SIZE)
    mkfs = payload.ensure(["node-tools"])["node-tools"] / "bin" / "mkfs.btrfs"
    subprocess.run([mkfs, "--quiet", "--metadata", "single", "--data", "single", image], check=True)
    mount_pool(image, point)
    try:
        yield point
    finally:
        # The device is freed with the last copy of the mount: a cluster that somebody starts meanwhile has one.
        unmount(str(point))
