"""A file as a block device. util-linux would do it too, but a minimal machine has no losetup."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_CONTROL = Path("/dev/loop-control")
_BLOCK = Path("/sys/block")
_GET_FREE = 0x4C82  # LOOP_CTL_GET_FREE
_CONFIGURE = 0x4C0A  # LOOP_CONFIGURE, Linux 5.8
_CLEAR = 0x4C01  # LOOP_CLR_FD
_GET_STATUS = 0x4C05  # LOOP_GET_STATUS64
_SET_CAPACITY = 0x4C07  # LOOP_SET_CAPACITY
_AUTOCLEAR = 4
_DIRECT_IO = 16
_MAJOR = 7
_LABEL = 63  # bytes of the name that a device can be given
# struct loop_config: descriptor, block size, struct loop_info64 (flags 52 bytes in, name 56), 8 reserved numbers.
_CONFIG = struct.Struct("=II52xI64s176x")
# struct loop_info64: device and inode of the file; the device the file itself is, if it is one; number; flags; name.
_INFO = struct.Struct("=QQQ16xI8xI64s112x")


@dataclass(frozen=True)
class Loop:
    """A device in use, and the file it stands for."""

    path: Path
    file_device: int
    file_inode: int
    over: int
    """The device number of the file, when that is a device itself."""
    label: str

    @property
    def number(self) -> int:
        return os.makedev(_MAJOR, int(self.path.name.removeprefix("loop")))


def attach(image: Path, *, stay: bool = False, label: str = "", cached: bool = False) -> tuple[int, Path]:
    """The device and an open descriptor of it.

    It is free again when nobody has it open or mounted; with `stay` not before it is detached. What is read and written
    goes past the machine's page cache, unless `cached`.
    """
    descriptor = os.open(image, os.O_RDWR | os.O_CLOEXEC)
    try:
        while True:
            device = _free()
            opened = os.open(device, os.O_RDWR | os.O_CLOEXEC)
            try:
                _configure(opened, descriptor, 0 if stay else _AUTOCLEAR, label, cached=cached)
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
    for entry in _BLOCK.glob("loop*/loop/backing_file"):
        try:
            told = entry.read_text().strip()
        except OSError:
            continue
        if told.removesuffix(" (deleted)") == str(image.resolve()):
            found.append(entry.parts[3])
    return found


def in_use() -> list[Loop]:
    """Every device that stands for a file."""
    found = []
    for entry in sorted(_BLOCK.glob("loop*/loop")):
        try:
            path = _node(int(entry.parent.name.removeprefix("loop")))
            with _open(path) as opened:
                told = fcntl.ioctl(opened, _GET_STATUS, bytes(_INFO.size))
        except OSError:
            continue  # freed meanwhile, or of the machine around our container, which we may not touch
        device, inode, over, _, _, label = _INFO.unpack(told)
        found.append(Loop(path, device, inode, over, label.rstrip(b"\0").decode(errors="replace")))
    return found


def of_file(file: Path) -> Loop | None:
    """The device of a file, by what the kernel knows of it: names differ between mount namespaces."""
    facts = file.stat()
    wanted = (facts.st_dev, facts.st_ino)
    return next((item for item in in_use() if (item.file_device, item.file_inode) == wanted), None)


def detach(device: Path) -> None:
    """Frees a device now, or as soon as nobody has it open."""
    try:
        with _open(device) as opened:
            fcntl.ioctl(opened, _CLEAR)
    except OSError as error:
        if error.errno != errno.ENXIO:  # it was free
            raise


def detach_labelled(label: str) -> None:
    """Frees every device with this label, and first those that stand for one of them."""
    known = in_use()
    ours = [item for item in known if item.label == short(label)]
    numbers = {item.number for item in ours}
    for item in [*(item for item in known if item.over in numbers and item not in ours), *ours]:
        detach(item.path)


def refresh(device: Path) -> None:
    """Takes the size that the file has now."""
    with _open(device) as opened:
        fcntl.ioctl(opened, _SET_CAPACITY)


def short(label: str) -> str:
    """A label as the kernel keeps it."""
    return label.encode()[:_LABEL].decode(errors="ignore")


def _free() -> Path:
    control = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        number = fcntl.ioctl(control, _GET_FREE)
    finally:
        os.close(control)
    return _node(number)


def _node(number: int) -> Path:
    device = Path(f"/dev/loop{number}")
    if not device.exists():  # a /dev that the kernel does not fill, as in containers
        os.mknod(device, stat.S_IFBLK | 0o600, os.makedev(_MAJOR, number))
    return device


@contextmanager
def _open(device: Path) -> Iterator[int]:
    opened = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield opened
    finally:
        os.close(opened)


def _configure(device: int, file: int, flags: int, label: str, *, cached: bool) -> None:
    """Past the machine's page cache where its file system can: everything would be in memory twice."""
    name = short(label).encode()
    if cached:
        fcntl.ioctl(device, _CONFIGURE, _CONFIG.pack(file, 0, flags, name))
        return
    try:
        fcntl.ioctl(device, _CONFIGURE, _CONFIG.pack(file, 0, flags | _DIRECT_IO, name))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        fcntl.ioctl(device, _CONFIGURE, _CONFIG.pack(file, 0, flags, name))
