"""The programs, libraries and links of a folder or of an image, as they lie beside each other."""

from __future__ import annotations

import gzip
import mmap
import os
import tarfile
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO

from hcp.errors import HcpError
from hcp.oci.layers import clean
from hcp.oci.writer import read_layout
from hcp.payload.linking.elf import MAGIC, Data, Elf, read_elf

_HOPS = 40
_GZIP = b"\x1f\x8b"
_OPAQUE, _WHITEOUT = ".wh..wh..opq", ".wh."


@dataclass
class Tree:
    """Paths are relative to the root, without a leading slash. An absolute link starts at the root."""

    files: dict[str, Elf] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    """Of a layer: other files, folders, and what it takes away from the layers below."""

    def find(self, path: str) -> str | None:
        """The program or library that a path leads to, links followed."""
        ahead = path.split("/")[::-1]
        done: list[str] = []
        hops = 0
        while ahead:
            part = ahead.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = done[:-1]
                continue
            target = self.links.get("/".join([*done, part]))
            if target is None:
                done.append(part)
                continue
            hops += 1
            if hops > _HOPS:
                return None
            if target.startswith("/"):
                done = []
            ahead.extend(target.split("/")[::-1])
        found = "/".join(done)
        return found if found in self.files else None

    def add(self, path: str, data: Data) -> None:
        try:
            elf = read_elf(data)
        except ValueError as error:
            raise HcpError(f"{path} is a damaged program or library", cause=str(error)) from error
        if elf is not None:
            self.files[path] = elf

    def put(self, upper: Tree) -> None:
        """Another layer on top. Whatever it has at a path replaces what was there."""
        for path in upper.hidden:
            self._hide(path)
        for path in upper.folders:
            self.links.pop(path, None)
        for path in (*upper.files, *upper.others, *upper.links):
            self.files.pop(path, None)
            self.links.pop(path, None)
        self.files.update(upper.files)
        self.links.update(upper.links)

    def _hide(self, path: str) -> None:
        """A path, or with `/` at its end everything below it."""
        below = path if path.endswith("/") else f"{path}/"
        self.files = {name: elf for name, elf in self.files.items() if name != path and not name.startswith(below)}
        self.links = {name: to for name, to in self.links.items() if name != path and not name.startswith(below)}


def read_folder(root: Path) -> Tree:
    tree = Tree()
    for folder, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = Path(folder) / name
            shown = path.relative_to(root).as_posix()
            if path.is_symlink():
                tree.links[shown] = str(path.readlink())
            elif path.is_file() and path.stat().st_size > len(MAGIC):
                with path.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    tree.add(shown, data)
    return tree


def read_image(layout: Path) -> Tree:
    """What a container of the image sees."""
    image = read_layout(layout)
    tree = Tree()
    for descriptor in image.manifest["layers"]:
        tree.put(_layer(_Blob(descriptor["digest"], image.blob(descriptor["digest"]))))
    return tree


@dataclass(frozen=True)
class _Blob:
    digest: str
    path: Path = field(compare=False)  # images that share a base have its layer under different paths


@lru_cache(maxsize=8)
def _layer(blob: _Blob) -> Tree:
    return read_tar(blob.path)


def read_tar(path: Path) -> Tree:
    tree = Tree()
    with path.open("rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        source: IO[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]
        with tarfile.open(fileobj=source, mode="r|") as archive:
            for member in archive:
                _add_member(tree, archive, member)
    return tree


def _add_member(tree: Tree, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
    path = clean(member.name)
    folder, _, name = path.rpartition("/")
    if name == _OPAQUE:
        tree.hidden.append(f"{folder}/")
    elif name.startswith(_WHITEOUT):
        tree.hidden.append(f"{folder}/{name.removeprefix(_WHITEOUT)}".lstrip("/"))
    elif member.issym():
        tree.links[path] = member.linkname
    elif member.islnk():  # the same file under a second name
        tree.links[path] = "/" + clean(member.linkname)
    elif member.isdir():
        tree.folders.append(path)
    elif member.isreg():
        content = archive.extractfile(member)
        start = content.read(len(MAGIC)) if content else b""
        if content is not None and start == MAGIC:
            tree.add(path, start + content.read())
        else:
            tree.others.append(path)
