"""Archives: tars with blobs named by digest, an index as OCI layouts have it, and the plan of the run.

Each holds what is new since an earlier run; all manifests are in the first of a run, so each run can be read alone.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hcp.errors import HcpError
from hcp.mirror.plan import Plan
from hcp.mirror.store import BlobStore
from hcp.mirror.workspace import disk_errors
from hcp.oci import image
from hcp.oci.image import Image
from hcp.oci.writer_layout import INDEX_TYPE, canonical_json

PLAN = "working-dir/plan.json"
PATTERN = "mirror_*.tar"
_BLOCK = 512


@dataclass(frozen=True)
class Member:
    """One file of an archive, or a folder that must not be torn apart."""

    name: str
    size: int
    content: Path | bytes


def blob_member(digest: str, size: int, content: Path | bytes) -> Member:
    return Member(f"blobs/{digest.replace(':', '/')}", size, content)


def folder_member(artifact: Path) -> Member:
    """A built component, as `payload export` packs it: `<component>/<key>/…`."""
    size = sum(file.stat().st_size + 2 * _BLOCK for file in artifact.rglob("*") if file.is_file())
    return Member(f"{artifact.parent.name}/{artifact.name}", size, artifact)


def new_members(images: Iterable[Image], store: BlobStore, known: set[str]) -> tuple[list[Member], list[Member]]:
    """Manifests of all images, and the blobs that no earlier archive has."""
    manifests: dict[str, Member] = {}
    blobs: dict[str, Member] = {}
    for found in images:
        for one in found.manifests:
            manifests.setdefault(one.digest, blob_member(one.digest, len(one.raw), one.raw))
        for blob in found.all_blobs:
            if blob.digest not in known:
                blobs.setdefault(blob.digest, blob_member(blob.digest, blob.size, store.path(blob.digest)))
    return list(manifests.values()), list(blobs.values())


def parts(manifests: list[Member], blobs: list[Member], most: int, *, strict: bool) -> Iterator[list[Member]]:
    """How members are shared out over archives of at most `most` bytes; 0 is no limit."""
    current, used = list(manifests), sum(_room(one) for one in manifests)
    for blob in blobs:
        room = _room(blob)
        if most and room > most and strict:
            raise HcpError(
                f"{blob.name} has {blob.size >> 20} MiB, more than one archive may have",
                hint="raise archiveSize, or leave --strict-archive out: it then gets an archive of its own",
            )
        if most and current and used + room > most:
            yield current
            current, used = [], 0
        current.append(blob)
        used += room
    if current:
        yield current


def write(folder: Path, plan: Plan, config: Mapping[str, Any], shares: Iterable[list[Member]]) -> list[Path]:
    """One archive per share, with numbers after those that are there; all of them or none get their names."""
    number = max((int(path.stem.rpartition("_")[2]) for path in archives(folder)), default=0)
    written: list[tuple[Path, Path]] = []
    with disk_errors(folder):
        for stale in folder.glob(".mirror_*.part"):
            stale.unlink()
        try:
            for share in shares:
                number += 1
                final = folder / f"mirror_{number:06}.tar"
                part = folder / f".{final.name}.part"
                written.append((part, final))
                _write_one(part, plan, config, share)
        except BaseException:
            for part, _ in written:
                part.unlink(missing_ok=True)
            raise
        for part, final in written:
            part.rename(final)
    return [final for _, final in written]


def archives(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(PATTERN) if path.stem.rpartition("_")[2].isdigit())


def _write_one(path: Path, plan: Plan, config: Mapping[str, Any], members: list[Member]) -> None:
    described = canonical_json({**plan.to_dict(), "config": config})
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for member in (
            Member("oci-layout", 0, canonical_json({"imageLayoutVersion": "1.0.0"})),
            Member("index.json", 0, _index(plan, members)),
            Member(PLAN, 0, described),
            *members,
        ):
            if isinstance(member.content, bytes):
                info = tarfile.TarInfo(member.name)
                info.size = len(member.content)
                archive.addfile(info, io.BytesIO(member.content))
            else:
                archive.add(member.content, arcname=member.name, filter=_anonymous)


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _index(plan: Plan, members: list[Member]) -> bytes:
    manifests = {member.name: member.content for member in members if isinstance(member.content, bytes)}
    listed = []
    for item in plan.items:
        raw = manifests.get(f"blobs/{item.digest.replace(':', '/')}")
        if raw is not None:
            name = {"org.opencontainers.image.ref.name": f"{item.repository}:{item.tag}"}
            kind = image.kind_of(json.loads(raw))
            listed.append({"mediaType": kind, "digest": item.digest, "size": len(raw), "annotations": name})
    return canonical_json({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": listed})


def _room(member: Member) -> int:
    return member.size + 3 * _BLOCK
