"""Carrying built artifacts to another machine in one file, so that it builds nothing.

The file is a plain tar: `<component>/<key>/…` for every artifact. Binaries and image layers are mostly compressed
or do not compress well, and a plain tar is as fast as the disk.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from hcp.errors import HcpError
from hcp.payload.checksums import METADATA, DamagedError, verify
from hcp.payload.registry import Registry
from hcp.payload.store import Store

# What archives of `hcp mirror` hold besides components.
OF_MIRROR = ("oci-layout", "index.json", "blobs", "working-dir")


def export(store: Store, registry: Registry, names: Iterable[str], target: Path) -> list[str]:
    """Writes the named artifacts (all that are there, if none are named) and returns their names."""
    asked = list(names)
    packed = []
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with tarfile.open(temporary, "w", format=tarfile.PAX_FORMAT) as archive:
            for name in asked or registry.names():
                key = registry.key(name)
                path = store.find(name, key)
                if path is not None:
                    archive.add(path, arcname=f"{name}/{key}")
                    packed.append(name)
                elif asked:
                    raise HcpError(f"{name} is not built yet", hint=f"Run: hcp payload build {name}")
        if not packed:
            raise HcpError("There is nothing to export", hint="Run: hcp payload build")
        temporary.rename(target)
    except OSError as error:
        raise HcpError(f"{target} cannot be written", cause=error.strerror or str(error)) from error
    finally:
        temporary.unlink(missing_ok=True)
    return packed


def import_file(store: Store, registry: Registry, source: Path) -> tuple[list[str], list[str]]:
    """Takes the artifacts of an exported file into the cache; returns what was taken and what was left out.

    Left out is what this version of hcp would never look for. Every file is checked before it is used.
    """
    staging = store.root / "work" / f"import-{os.getpid()}"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        _unpack(source, staging)
        return _adopt(store, registry, staging, source)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _unpack(source: Path, staging: Path) -> None:
    try:
        with tarfile.open(source) as archive:
            # Python learned this filter with 3.11.4; Debian 12 has an older one, so the checks below do without it.
            archive.extraction_filter = getattr(tarfile, "tar_filter", lambda member, _: member)
            for member in archive:
                if member.name.partition("/")[0] in OF_MIRROR:
                    continue
                # Images on one base share its blob by a hard link, here as in the cache.
                paths = [PurePosixPath(name) for name in (member.name, member.linkname if member.islnk() else "")]
                outside = any(path.is_absolute() or ".." in path.parts for path in paths)
                through_link = not (staging / member.name).parent.resolve().is_relative_to(staging.resolve())
                known = member.isdir() or member.isreg() or member.issym() or member.islnk()
                if outside or through_link or not known:
                    raise HcpError(f"{source} holds {member.name}, which no exported file has")
                member.mode &= 0o755
                archive.extract(member, staging)
    except FileNotFoundError as error:
        raise HcpError(f"There is no file {source}") from error
    except (tarfile.TarError, OSError) as error:
        raise HcpError(f"{source} cannot be read as an exported payload file", cause=str(error)) from error


def _adopt(store: Store, registry: Registry, staging: Path, source: Path) -> tuple[list[str], list[str]]:
    taken, left = [], []
    known = set(registry.names())
    found = sorted(staging.glob(f"*/*/{METADATA}"))
    if not found:
        raise HcpError(
            f"{source} holds no payload",
            hint="Make one with: hcp payload export FILE, or hcp mirror with a release that was built here",
        )
    for metadata in found:
        folder = metadata.parent
        name, key = folder.parent.name, folder.name
        if name not in known or registry.key(name) != key:
            left.append(name)
            continue
        try:
            verify(folder, name, key)
        except (DamagedError, ValueError) as error:
            raise HcpError(f"{name} in {source} is damaged", cause=str(error), hint="Export it again.") from error
        with store.lock(f"{name}-{key}"):
            if store.find(name, key) is None:
                store.discard(name, key)
                store.adopt(folder, name, key)
        taken.append(name)
    return taken, left
