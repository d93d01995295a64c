"""Reading archives where they lie: nothing is unpacked, blobs are sent from their place inside.

Files that `payload export` wrote can be read as well: they hold layouts, and a blob is a blob.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import re
import tarfile
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hcp.errors import HcpError
from hcp.mirror.archive_writing import PLAN, archives
from hcp.mirror.plan import Plan
from hcp.oci import image
from hcp.oci.errors import broken
from hcp.oci.image import Image
from hcp.oci.upload import Content

_BLOB = re.compile(r"(?:.*/)?blobs/(sha256|sha512)/([0-9a-f]{64,128})")
_LAYOUT = re.compile(r"([^/]+)/[^/]+/image/index\.json")
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Place:
    path: Path
    offset: int
    size: int


@dataclass
class Archives:
    """Where every blob is. `layouts`: the index of each component of an exported payload."""

    blobs: dict[str, Place] = field(default_factory=dict)
    described: dict[str, Any] | None = None
    layouts: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        if self.described is None:
            raise HcpError("the archives have no plan", hint="mirror to disk again")
        return Plan.from_dict(self.described)

    def read(self, digest: str) -> bytes:
        place = self.blobs.get(digest)
        if place is None:
            raise absent(digest)
        with place.path.open("rb") as file:
            file.seek(place.offset)
            data = file.read(place.size)
        if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
            raise broken(f"{digest} in {place.path.name}", "its bytes were changed on the way")
        return data

    def open(self, digest: str) -> io.BytesIO:
        return io.BytesIO(self.read(digest))

    def image(self, digest: str) -> Image:
        raw = self.read(digest)
        children = image.children_of(digest, image.document(digest, raw))
        return image.made_of(digest, raw, self._content, tuple(self.image(child) for child in children))

    def _content(self, digest: str, size: int) -> Content:
        place = self.blobs.get(digest)
        return Slice(digest, place) if place is not None else Absent(digest)


class Slice:
    """A blob inside an archive, checked while it is read."""

    def __init__(self, digest: str, place: Place) -> None:
        self._digest = digest
        self._place = place
        self.failure: Exception | None = None

    async def read(self, start: int) -> AsyncIterator[bytes]:
        algorithm, _, wanted = self._digest.partition(":")
        hasher = hashlib.new(algorithm)
        left = self._place.size - start
        with await asyncio.to_thread(self._place.path.open, "rb") as file:
            file.seek(self._place.offset + start)
            while left > 0:
                data = await asyncio.to_thread(file.read, min(_CHUNK, left))
                if not data:
                    break
                left -= len(data)
                hasher.update(data)
                if not left and start == 0 and hasher.hexdigest() != wanted:
                    break  # the last piece of damaged bytes is never sent
                yield data
        if left or (start == 0 and hasher.hexdigest() != wanted):
            self.failure = HcpError(
                f"{self._place.path} is damaged",
                cause=f"{self._digest} was changed on the way",
                hint="carry the file over again; what has arrived in the registry is not sent again",
            )
            raise self.failure


class Absent:
    """A blob of an earlier archive: only the registry can have it."""

    def __init__(self, digest: str) -> None:
        self.failure: Exception | None = absent(digest)

    async def read(self, start: int) -> AsyncIterator[bytes]:
        assert self.failure is not None
        raise self.failure
        yield b""


def absent(digest: str) -> HcpError:
    return HcpError(
        f"{digest} is neither in these archives nor in the registry",
        hint="it went into an earlier archive: carry that one over too, or mirror to disk again with --since and the "
        "day before it was made",
    )


def scan(paths: Iterable[Path]) -> Archives:
    """Reads the headers of all archives, the oldest first."""
    found = Archives()
    for path in paths:
        try:
            with tarfile.open(path, "r:") as archive:
                _scan_one(found, path, archive)
        except (tarfile.TarError, OSError, EOFError, ValueError, KeyError) as error:
            raise HcpError(
                f"{path} cannot be read as an archive", cause=str(error), hint="carry the file over again, whole"
            ) from error
    return found


def at(place: Path) -> list[Path]:
    """The archives of a folder, or the one file that was named."""
    if place.is_file():
        return [place]
    found = archives(place)
    if not found:
        raise HcpError(
            f"{place} has no archives",
            cause="no file is called mirror_000001.tar or so" if place.is_dir() else "there is no such folder",
            hint="name the folder with what mirroring to disk wrote, or a file that payload export wrote",
        )
    return found


def _scan_one(found: Archives, path: Path, archive: tarfile.TarFile) -> None:
    size = path.stat().st_size
    places: dict[str, Place] = {}
    for member in archive:
        if member.isreg():
            places[member.name] = Place(path, member.offset_data, member.size)
            if member.offset_data + member.size > size:
                raise tarfile.ReadError("it ends too early")
        elif member.islnk() and member.linkname in places:
            places[member.name] = places[member.linkname]
        else:
            continue
        blob = _BLOB.fullmatch(member.name)
        if blob is not None:
            found.blobs.setdefault(f"{blob[1]}:{blob[2]}", places[member.name])
        layout = _LAYOUT.fullmatch(member.name)
        if layout is not None or member.name == PLAN:
            content = archive.extractfile(member)
            assert content is not None
            document = json.load(content)
            if layout is not None:
                found.layouts[layout[1]] = document
            else:
                found.described = document
    # An archive that was cut off between two files has no end.
    if archive.offset > size:
        raise tarfile.ReadError("it ends too early")
