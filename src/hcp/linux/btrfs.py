"""Subvolumes of btrfs: made, copied at once, bounded, counted and removed, without btrfs-progs."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT_INODE = 256
"""The number that the top folder of every subvolume has."""
_CREATE = 0x5000940E  # BTRFS_IOC_SUBVOL_CREATE
_DESTROY = 0x5000940F  # BTRFS_IOC_SNAP_DESTROY
_SNAPSHOT = 0x50009417  # BTRFS_IOC_SNAP_CREATE_V2
_LIMIT = 0x8030942B  # BTRFS_IOC_QGROUP_LIMIT
_GROUP = 0x4010942A  # BTRFS_IOC_QGROUP_CREATE
_LOOKUP = 0xD0009412  # BTRFS_IOC_INO_LOOKUP
_SEARCH = 0xD0009411  # BTRFS_IOC_TREE_SEARCH
_READ_ONLY = 2
_MAX_REFERRED = 1
_QUOTA_TREE = 8
_QGROUP_INFO = 242
_NAME = struct.Struct("=q4088s")
_COPY = struct.Struct("=qQQ32x4040s")
_KEY = struct.Struct("=QQQQQQQIIII32x")
_HEADER = struct.Struct("=QQQII")


def is_subvolume(path: Path) -> bool:
    return path.is_dir() and path.stat().st_ino == ROOT_INODE


def create(path: Path) -> None:
    with _open(path.parent) as parent:
        _ask(parent, _CREATE, _NAME.pack(0, path.name.encode()))


def snapshot(source: Path, target: Path, *, read_only: bool) -> None:
    """A copy of this moment that shares everything with its source until one of them is written to."""
    with _open(source) as original, _open(target.parent) as parent:
        flags = _READ_ONLY if read_only else 0
        _ask(parent, _SNAPSHOT, _COPY.pack(original, 0, flags, target.name.encode()))


def bound(path: Path, size: int) -> None:
    """At most so many bytes in this subvolume."""
    with _open(path) as opened:
        _ask(opened, _LIMIT, struct.pack("=QQQQQQ", 0, _MAX_REFERRED, size, 0, 0, 0))


def used(path: Path) -> int:
    """Bytes that a subvolume holds, as the file system counted them when it last wrote its books."""
    with _open(path) as opened:
        number = _number(opened)
        key = _KEY.pack(_QUOTA_TREE, 0, 0, number, number, 0, 2**64 - 1, _QGROUP_INFO, _QGROUP_INFO, 1, 0)
        try:
            answer = _ask(opened, _SEARCH, key + bytes(4096 - len(key)))
        except OSError as error:
            if error.errno == errno.ENOENT:  # nothing is counted here
                return 0
            raise
    if struct.unpack_from("=I", answer, 64)[0] == 0:
        return 0
    return int(struct.unpack_from("=QQ", answer, _KEY.size + _HEADER.size)[1])


def destroy(path: Path) -> None:
    """Removes a subvolume with all that is in it; subvolumes that somebody made inside it go first."""
    with _open(path) as opened:
        number = _number(opened)
    with _open(path.parent) as parent:
        try:
            _ask(parent, _DESTROY, _NAME.pack(0, path.name.encode()))
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
            for inner in _nested(path):
                destroy(inner)
            _ask(parent, _DESTROY, _NAME.pack(0, path.name.encode()))
        with suppress(OSError):  # newer kernels drop what they counted by themselves, once the space is free
            _ask(parent, _GROUP, struct.pack("=QQ", 0, number))


def _nested(path: Path) -> list[Path]:
    found = []
    for folder, names, _ in os.walk(path):
        for name in list(names):
            inner = Path(folder) / name
            if not inner.is_symlink() and is_subvolume(inner):
                found.append(inner)
                names.remove(name)
    return found


def _number(opened: int) -> int:
    answer = _ask(opened, _LOOKUP, struct.pack("=QQ4080x", 0, ROOT_INODE))
    return int(struct.unpack_from("=Q", answer)[0])


def _ask(opened: int, request: int, words: bytes) -> bytearray:
    """Python copies only small immutable arguments."""
    buffer = bytearray(words)
    fcntl.ioctl(opened, request, buffer)
    return buffer


@contextmanager
def _open(path: Path) -> Iterator[int]:
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield opened
    finally:
        os.close(opened)
