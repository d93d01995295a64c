"""One image layer: a set of paths that becomes a tar whose bytes depend only on what is in it.

Paths are collected first and written sorted, with one fixed time and numeric owners, so two builds of the same
content give the same digest. Collecting first also means a path of a root file system can be replaced or removed before
anything is written, instead of being shipped and hidden by a whiteout.
"""

from __future__ import annotations

import fnmatch
import gzip
import hashlib
import io
import os
import stat
import struct
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Self

EPOCH = 1_700_000_000  # one fixed time for every file: some tools dislike files from 1970
XATTR_PREFIX = "SCHILY.xattr."
CAPABILITY_BITS = {"net_bind_service": 10, "net_admin": 12, "net_raw": 13, "sys_admin": 21, "sys_nice": 23}
_CHUNK = 1 << 20


def capability(*names: str) -> bytes:
    """The `security.capability` value that gives these capabilities as permitted and effective."""
    bits = 0
    for name in names:
        bits |= 1 << CAPABILITY_BITS[name]
    low, high = bits & 0xFFFFFFFF, bits >> 32
    return struct.pack("<IIIII", 0x02000001, low, 0, high, 0)


@dataclass(frozen=True)
class Entry:
    """One path of a layer. `source` is where the bytes of a regular file come from."""

    kind: bytes
    mode: int
    uid: int = 0
    gid: int = 0
    source: bytes | Path | tuple[tarfile.TarFile, tarfile.TarInfo] | None = None
    target: str = ""
    device: tuple[int, int] = (0, 0)
    xattrs: tuple[tuple[str, bytes], ...] = ()
    mtime: int = EPOCH


@dataclass(frozen=True)
class Blob:
    """A finished layer file: its digest as stored, and the digest of the tar inside (the diff id)."""

    digest: str
    diff_id: str
    size: int
    media_type: str


@dataclass
class Layer:
    """Collects paths; `write_layer` turns it into a blob. Later additions replace earlier ones."""

    comment: str = ""
    entries: dict[str, Entry] = field(default_factory=dict)
    _open: list[tarfile.TarFile] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for archive in self._open:
            archive.close()
        self._open.clear()

    def file(
        self,
        path: str,
        source: Path | bytes | str,
        *,
        mode: int = 0o644,
        uid: int = 0,
        gid: int = 0,
        capabilities: Iterable[str] = (),
    ) -> None:
        """A regular file from a path on disk, or from bytes or text given here."""
        names = tuple(capabilities)
        xattrs = (("security.capability", capability(*names)),) if names else ()
        content = source.encode() if isinstance(source, str) else source
        self.entries[_clean(path)] = Entry(tarfile.REGTYPE, mode, uid, gid, content, xattrs=xattrs)

    def binary(self, path: str, source: Path, **options: int) -> None:
        self.file(path, source, mode=0o755, uid=options.get("uid", 0), gid=options.get("gid", 0))

    def directory(self, path: str, *, mode: int = 0o755, uid: int = 0, gid: int = 0) -> None:
        self.entries[_clean(path)] = Entry(tarfile.DIRTYPE, mode, uid, gid)

    def symlink(self, path: str, target: str) -> None:
        self.entries[_clean(path)] = Entry(tarfile.SYMTYPE, 0o777, target=target)

    def whiteout(self, path: str) -> None:
        """Hide a path of a layer below."""
        clean = PurePosixPath(_clean(path))
        self.entries[str(clean.parent / f".wh.{clean.name}")] = Entry(tarfile.REGTYPE, 0o644, source=b"")

    def tree(self, source: Path, destination: str = "", *, owner: tuple[int, int] | None = (0, 0)) -> None:
        """Everything below a directory; `owner=None` keeps the owners found on disk."""
        for root, directories, files in os.walk(source):
            directories.sort()
            for name in [*directories, *sorted(files)]:
                full = Path(root) / name
                relative = full.relative_to(source).as_posix()
                self.entries[_clean(f"{destination}/{relative}")] = _from_disk(full, owner)

    def tar(self, source: Path, *, drop: Iterable[str] = (), keep: Callable[[str], bool] | None = None) -> None:
        """Everything of an uncompressed tar, except paths matching a `drop` pattern (or below a matching one)."""
        archive = tarfile.open(source, "r:", errorlevel=2)  # noqa: SIM115 - read lazily when the layer is written
        self._open.append(archive)
        patterns = tuple(drop)
        hardlinks: list[tuple[str, str]] = []
        for member in archive:
            path = _clean(member.name)
            if not path or dropped(path, patterns) or (keep is not None and not keep(path)):
                continue
            if member.islnk():
                hardlinks.append((path, _clean(member.linkname)))
                continue
            self.entries[path] = _from_member(archive, member)
        for path, target in hardlinks:
            if target in self.entries:
                self.entries[path] = replace(self.entries[target], target=target)

    def remove(self, pattern: str) -> None:
        """Forget every collected path that matches, and everything below it."""
        for path in [path for path in self.entries if dropped(path, (pattern,))]:
            del self.entries[path]

    def complete(self) -> dict[str, Entry]:
        """All entries sorted, with the parent directories nobody named added."""
        result = dict(self.entries)
        for path in self.entries:
            for parent in PurePosixPath(path).parents:
                if str(parent) != ".":
                    result.setdefault(str(parent), Entry(tarfile.DIRTYPE, 0o755))
        return dict(sorted(result.items(), key=lambda item: PurePosixPath(item[0]).parts))


def dropped(path: str, patterns: Iterable[str]) -> bool:
    """Whether a path, or a directory above it, matches one of the shell-style patterns."""
    candidates = [path, *(str(parent) for parent in PurePosixPath(path).parents)]
    return any(fnmatch.fnmatchcase(candidate, pattern.strip("/")) for pattern in patterns for candidate in candidates)


def write_layer(layer: Layer, blobs: Path, *, compress: bool = True) -> Blob:
    """Write the layer into a blob directory (`blobs/sha256`) and say what it is."""
    blobs.mkdir(parents=True, exist_ok=True)
    temporary = blobs / f".layer-{os.getpid()}-{id(layer)}"
    try:
        with temporary.open("wb") as raw:
            stored = _Hashing(raw)
            if compress:
                with gzip.GzipFile(filename="", mode="wb", compresslevel=1, fileobj=stored, mtime=0) as zipped:
                    diff_id = _write_tar(layer, zipped)
            else:
                diff_id = _write_tar(layer, stored)
        digest = stored.digest()
        temporary.rename(blobs / digest.removeprefix("sha256:"))
    finally:
        temporary.unlink(missing_ok=True)
    suffix = "+gzip" if compress else ""
    return Blob(digest, diff_id, stored.size, f"application/vnd.oci.image.layer.v1.tar{suffix}")


class _Hashing(io.RawIOBase):
    """A writer that remembers the digest and the length of what passed through."""

    def __init__(self, below: IO[bytes]) -> None:
        self._below = below
        self._hash = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override]
        self._hash.update(data)
        self._below.write(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"


def _write_tar(layer: Layer, below: IO[bytes] | _Hashing | gzip.GzipFile) -> str:
    plain = _Hashing(below)  # type: ignore[arg-type]
    first_of: dict[int, str] = {}
    with tarfile.open(
        fileobj=plain,  # type: ignore[call-overload]
        mode="w|",
        format=tarfile.PAX_FORMAT,
        bufsize=_CHUNK,
        copybufsize=_CHUNK,
    ) as archive:
        for path, entry in layer.complete().items():
            info, content = _header(path, entry, first_of)
            if content is None:
                archive.addfile(info)
            else:
                with content:
                    archive.addfile(info, content)
    return plain.digest()


def _header(path: str, entry: Entry, first_of: dict[int, str]) -> tuple[tarfile.TarInfo, IO[bytes] | None]:
    info = tarfile.TarInfo(path)
    info.type, info.mode, info.uid, info.gid, info.mtime = entry.kind, entry.mode, entry.uid, entry.gid, entry.mtime
    info.devmajor, info.devminor = entry.device
    if entry.kind == tarfile.SYMTYPE:
        info.linkname = entry.target
        return info, None
    if entry.kind != tarfile.REGTYPE:
        return info, None
    if isinstance(entry.source, tuple) and id(entry.source[1]) in first_of:
        info.type, info.linkname = tarfile.LNKTYPE, first_of[id(entry.source[1])]
        return info, None
    info.pax_headers = {
        XATTR_PREFIX + name: value.decode("utf-8", "surrogateescape") for name, value in sorted(entry.xattrs)
    }
    if isinstance(entry.source, tuple):
        archive, member = entry.source
        first_of[id(member)] = path
        info.size = member.size
        return info, archive.extractfile(member)
    if isinstance(entry.source, Path):
        info.size = entry.source.stat().st_size
        return info, entry.source.open("rb")
    data = entry.source or b""
    info.size = len(data)
    return info, io.BytesIO(data)


def _from_disk(path: Path, owner: tuple[int, int] | None) -> Entry:
    status = path.lstat()
    uid, gid = owner if owner is not None else (status.st_uid, status.st_gid)
    mode = stat.S_IMODE(status.st_mode)
    if path.is_symlink():
        return Entry(tarfile.SYMTYPE, 0o777, uid, gid, target=str(path.readlink()))
    if path.is_dir():
        return Entry(tarfile.DIRTYPE, mode, uid, gid)
    return Entry(tarfile.REGTYPE, mode, uid, gid, source=path)


def _from_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Entry:
    xattrs = tuple(
        (key.removeprefix(XATTR_PREFIX), value.encode("utf-8", "surrogateescape"))
        for key, value in member.pax_headers.items()
        if key.startswith(XATTR_PREFIX)
    )
    kind = tarfile.REGTYPE if member.isreg() else member.type
    source = (archive, member) if kind == tarfile.REGTYPE else None
    device = (member.devmajor, member.devminor)
    # The time stays: compiled Python files name the time of their source. mmdebstrap has already made it reproducible.
    return Entry(
        kind, member.mode, member.uid, member.gid, source, member.linkname, device, xattrs, mtime=int(member.mtime)
    )


def _clean(path: str) -> str:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError(f"a layer path must not leave the image: {path}")
    return "/".join(parts)
