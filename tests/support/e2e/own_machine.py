"""A machine that nobody but its owner knows: the release's node disk in a QEMU that is started by hand."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hcp import payload
from hcp.local.addons.emulation import QEMU_PROCESSOR


def unpack(component: str, target: Path, *members: str) -> None:
    """Files of a built image, or all of it."""
    found = payload.find(component)
    assert found is not None, f"{component} is not built"
    blobs = found / "image" / "blobs"
    index = json.loads((found / "image" / "index.json").read_text())
    manifest = json.loads((blobs / index["manifests"][0]["digest"].replace(":", "/")).read_text())
    target.mkdir(parents=True, exist_ok=True)
    for layer in manifest["layers"]:
        blob = blobs / layer["digest"].replace(":", "/")
        subprocess.run(["tar", "-C", target, "-xf", blob, *members], check=True)


@contextmanager
def started(folder: Path, drive: Path, *, memory: int = 2048) -> Iterator[Path]:
    """Boot the node disk with this config drive; gives the file with what its console shows.

    QEMU is that of the payload, in a root file system of its own, so nothing has to be installed here. Its network is
    the one that needs no rights and no setup: the machine reaches out through QEMU's own sockets.
    """
    root = folder / "qemu"
    unpack("rootfs-virt", root)
    unpack("node-disk-1.36", root, "disk/disk.qcow2")
    shutil.copyfile(drive, root / "drive.iso")
    os.mknod(root / "dev" / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    run = ["chroot", str(root)]
    # The disk of the release stays as it is: this is a layer above it.
    overlay = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", "/disk/disk.qcow2", "/own.qcow2", "16G"]
    subprocess.run([*run, *overlay], check=True)
    machine = [
        *("qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", QEMU_PROCESSOR, "-smp", "2"),
        *("-m", str(memory), "-display", "none", "-monitor", "none", "-serial", "file:/console.log"),
        *("-nic", "user,model=virtio-net-pci"),
        *("-drive", "file=/own.qcow2,if=virtio", "-drive", "file=/drive.iso,if=virtio,format=raw,readonly=on"),
    ]
    process = subprocess.Popen([*run, *machine], stdin=subprocess.DEVNULL)
    try:
        yield root / "console.log"
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(root)
