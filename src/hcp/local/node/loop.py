"""A file as a block device. util-linux would do it too, but a minimal machine has no losetup."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from pathlib import Path

_CONTROL = Path("/dev/loop-control")
_GET_FREE = 0x4C82  # LOOP_CTL_GET_FREE
_CONFIGURE = 0x4C0A  # LOOP_CONFIGURE, Linux 5.8
_AUTOCLEAR = 4
_DIRECT_IO = 16
_MAJOR = 7
# struct loop_config: descriptor, block size, struct loop_info64 (its flags 52 bytes in), 8 reserved numbers.
_CONFIG = struct.Struct("=II52xI240x")


def attach(image: Path) -> tuple[int, Path]:
    """The device and an open descriptor of it. It is free again when nobody has it open or mounted."""
    descriptor = os.open(image, os.O_RDWR | os.O_CLOEXEC)
    try:
        while True:
            device = _free()
            opened = os.open(device, os.O_RDWR | os.O_CLOEXEC)
            try:
                _configure(opened, descriptor)
            except OSError as error:
                os.close(opened)
                if error.errno != errno.EBUSY:  # busy: somebody was quicker, the next one then
                    raise
            else:
                return opened, device
    finally:
        os.close(descriptor)


def holders(image: Path) -> list[str]:
    """Devices that still stand for this file."""
    found = []
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            told = entry.read_text().strip()
        except OSError:
            continue
        if told.removesuffix(" (deleted)") == str(image.resolve()):
            found.append(entry.parts[3])
    return found


def _free() -> Path:
    control = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        number = fcntl.ioctl(control, _GET_FREE)
    finally:
        os.close(control)
    device = Path(f"/dev/loop{number}")
    if not device.exists():  # a /dev that the kernel does not fill, as in containers
        os.mknod(device, stat.S_IFBLK | 0o600, os.makedev(_MAJOR, number))
    return device


def _configure(device: int, file: int) -> None:
    """Past the machine's page cache where its file system can: everything would be in memory twice."""
    try:
        fcntl.ioctl(device, _CONFIGURE, _CONFIG.pack(file, 0, _AUTOCLEAR | _DIRECT_IO))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        fcntl.ioctl(device, _CONFIGURE, _CONFIG.pack(file, 0, _AUTOCLEAR))
