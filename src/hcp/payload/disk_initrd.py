"""A node's initramfs: our small init and the modules of the root disk, as a compressed cpio archive.

It has to be compressed: blocks of zeros become holes in the file system, and extlinux cannot read a file with holes.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

# The disk a VM boots from: virtio block or virtio SCSI with ext4. The others are needed soon after, and loading them
# here is faster than letting udev find out.
ROOT_MODULES = (
    "crc32c_generic",
    "virtio_pci",
    "virtio_blk",
    "virtio_net",
    "virtio_rng",
    "virtio_scsi",
    "sd_mod",
    "ext4",
    "isofs",
)
_DIRECTORY, _REGULAR = 0o040000, 0o100000
_END = "TRAILER!!!"


@dataclass
class Cpio:
    """The `newc` format that the kernel reads."""

    data: bytearray = field(default_factory=bytearray)
    _inode: int = 1

    def directory(self, path: str) -> None:
        self._add(path, _DIRECTORY | 0o755, b"")

    def file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        self._add(path, _REGULAR | mode, content)

    def finish(self) -> bytes:
        self._add(_END, 0, b"")
        return bytes(self.data)

    def _add(self, path: str, mode: int, content: bytes) -> None:
        name = path.encode() + b"\0"
        numbers = (self._inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        self._inode += 1
        self.data += b"070701" + "".join(f"{number:08x}" for number in numbers).encode() + name
        self._pad()
        self.data += content
        self._pad()

    def _pad(self) -> None:
        self.data += b"\0" * (-len(self.data) % 4)


def module_order(dependencies: str, wanted: Iterable[str]) -> list[str]:
    """Paths of the wanted modules and everything they need, in loading order.

    `dependencies` is the text of modules.dep: on each line a module's path and the paths it needs, the deepest last.
    A module that the kernel has built in is not in the list and needs no loading.
    """
    needs: dict[str, list[str]] = {}
    path_of: dict[str, str] = {}
    for line in dependencies.splitlines():
        path, _, rest = line.partition(":")
        needs[path] = rest.split()
        path_of[module_name(path)] = path
    order: dict[str, None] = {}
    for name in wanted:
        path = path_of.get(name, "")
        for item in [*reversed(needs.get(path, [])), path]:
            if item:
                order.setdefault(item)
    return list(order)


def module_name(path: str) -> str:
    return PurePosixPath(path).name.partition(".")[0].replace("-", "_")


def build_initrd(init: Path, modules: Path) -> bytes:
    """`modules` is lib/modules/<version> of the kernel, with modules.dep."""
    archive = Cpio()
    for path in ("dev", "proc", "sys", "root", "lib"):
        archive.directory(path)
    archive.file("init", init.read_bytes(), 0o755)
    order = module_order((modules / "modules.dep").read_text(), ROOT_MODULES)
    names = [f"/lib/{PurePosixPath(path).name}" for path in order]
    for path, name in zip(order, names, strict=True):
        archive.file(name.lstrip("/"), (modules / path).read_bytes())
    archive.file("modules", "".join(f"{name}\n" for name in names).encode())
    return gzip.compress(archive.finish(), 6, mtime=0)
