"""Finding files in image layers, top layer first, with whiteouts honoured."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from typing import IO, Any, cast

from hcp.oci.limits import MAX_FILE, MAX_MEMBERS, BoundedReader

_OPAQUE = ".wh..wh..opq"
_WHITEOUT = ".wh."
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class Unreadable(Exception):
    """A layer that is no tar, or compressed in a way we do not read."""


class Search:
    """Files to find; feed it layers from the top down."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._asked = {clean(path): path for path in paths}
        self._open = set(self._asked)
        self.found: dict[str, bytes] = {}

    @property
    def complete(self) -> bool:
        return not self._open

    def has(self, path: str) -> bool:
        return path in self.found

    def read_layer(self, file: IO[bytes]) -> None:
        """Take what this layer has; what it deletes is not looked for further down."""
        gone: set[str] = set()
        links: dict[str, str] = {}
        for member, archive in _members(file):
            path = clean(member.name)
            if path not in self._open:
                gone.update(self._hidden(path))
            elif member.isfile():
                self._take(path, archive, member)
            elif member.islnk():
                links[clean(member.linkname)] = path
        if links:
            file.seek(0)
            for member, archive in _members(file):
                target = links.get(clean(member.name))
                if target is not None and member.isfile():
                    self._take(target, archive, member)
        self._open -= gone

    def _take(self, path: str, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        if member.size > MAX_FILE:
            raise Unreadable(f"its file {path} has {member.size} bytes, {MAX_FILE} are permitted")
        content = archive.extractfile(member)
        if content is not None:
            self.found[self._asked[path]] = content.read()
            self._open.discard(path)

    def _hidden(self, path: str) -> Iterable[str]:
        """Which wanted files a whiteout entry hides in the layers below."""
        folder, _, name = path.rpartition("/")
        if not name.startswith(_WHITEOUT):
            return ()
        if name == _OPAQUE:
            return [p for p in self._open if not folder or p.startswith(f"{folder}/")]
        target = f"{folder}/{name[len(_WHITEOUT) :]}".lstrip("/")
        return [p for p in self._open if p == target or p.startswith(f"{target}/")]


def clean(path: str) -> str:
    """`./a/b`, `/a/b` and `a/b` are the same file."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _members(file: IO[bytes], piece: int = MAX_FILE) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
    """Every entry in order; what is wrong with the layer, its size included, is raised as Unreadable."""
    try:
        with _open_tar(file, piece) as archive:
            for number, member in enumerate(archive):
                if number > MAX_MEMBERS:
                    raise Unreadable(f"it has more than {MAX_MEMBERS} files")
                yield member, archive
                # It would keep every entry it has seen.
                archive.members = []  # type: ignore[attr-defined]
    except (tarfile.TarError, OSError, EOFError, zlib.error, KeyError, ValueError, OverflowError) as exc:
        raise Unreadable(str(exc) or type(exc).__name__) from exc


def _open_tar(file: IO[bytes], piece: int) -> tarfile.TarFile:
    start = file.read(4)
    file.seek(0)
    if start.startswith(_ZSTD):
        raise Unreadable("it is compressed with zstd, only gzip and plain tar can be read")
    source: Any = gzip.GzipFile(fileobj=file, mode="rb") if start.startswith(_GZIP) else file
    return tarfile.open(fileobj=cast("IO[bytes]", BoundedReader(source, piece=piece)), mode="r:")


def read_below(file: IO[bytes], folder: str) -> dict[str, bytes]:
    """Every regular file of a layer below a folder, by its clean path."""
    return dict(each_below(file, folder))


def each_below(file: IO[bytes], folder: str, most: int = MAX_FILE) -> Iterator[tuple[str, bytes]]:
    """One after the other, for folders that do not fit into memory; whiteouts are files here."""
    prefix = f"{clean(folder)}/"
    for member, archive in _members(file, most):
        path = clean(member.name)
        if not path.startswith(prefix) or not member.isfile():
            continue
        if member.size > most:
            raise Unreadable(f"its file {path} has {member.size} bytes, {most} are permitted")
        content = archive.extractfile(member)
        if content is not None:
            yield path, content.read()
