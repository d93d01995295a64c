"""The list of files that every artifact carries, and checking an artifact against it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

METADATA = ".hcp-artifact.json"
_CHUNK = 1 << 20


class DamagedError(Exception):
    """An artifact is not what was once written."""


def sha256_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def seal(folder: Path, facts: dict[str, Any]) -> None:
    """Writes the checksums file, takes away write permission, and brings everything to the disk."""
    files: dict[str, dict[str, Any]] = {}
    for path in _entries(folder):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            files[name] = {"link": str(path.readlink())}
            continue
        path.chmod(path.stat().st_mode & 0o7555)
        files[name] = {"sha256": sha256_file(path), "size": path.stat().st_size}
        _sync(path)
    target = folder / METADATA
    target.write_text(json.dumps({**facts, "files": files}, indent=1, sort_keys=True) + "\n")
    _sync(target)


def read_metadata(folder: Path) -> dict[str, Any]:
    document = json.loads((folder / METADATA).read_text())
    if not isinstance(document, dict):
        raise ValueError(f"{METADATA} is not an object")
    return document


def verify(folder: Path, name: str, key: str) -> None:
    """Raises DamagedError unless every file is there with the content it was sealed with, and no other."""
    try:
        document = read_metadata(folder)
        expected: dict[str, dict[str, Any]] = document["files"]
    except (OSError, ValueError, KeyError) as error:
        raise DamagedError(f"its checksums file cannot be read ({error})") from error
    if (document.get("component"), document.get("key")) != (name, key):
        raise DamagedError("its checksums file belongs to another artifact")
    found = {path.relative_to(folder).as_posix(): path for path in _entries(folder)}
    for path_name in sorted(expected.keys() | found.keys()):
        if path_name not in found:
            raise DamagedError(f"{path_name} is missing")
        if path_name not in expected:
            raise DamagedError(f"{path_name} does not belong to it")
        if not _matches(found[path_name], expected[path_name]):
            raise DamagedError(f"{path_name} has changed")


def fingerprint(folder: Path) -> str:
    """A text that changes when any file of the artifact is touched, made without reading the files."""
    lines = []
    for path in [*_entries(folder), folder / METADATA]:
        state = path.lstat()
        lines.append(f"{path.relative_to(folder).as_posix()} {state.st_size} {state.st_ino} {state.st_ctime_ns}")
    return "\n".join(lines)


def _matches(path: Path, expected: dict[str, Any]) -> bool:
    if "link" in expected:
        return path.is_symlink() and str(path.readlink()) == expected["link"]
    if path.is_symlink() or path.stat().st_size != expected.get("size"):
        return False
    return sha256_file(path) == expected.get("sha256")


def _entries(folder: Path) -> Iterator[Path]:
    """Files and links below a folder, in a fixed order, without the checksums file itself."""
    for root, folders, files in os.walk(folder):
        folders.sort()
        links = [name for name in folders if (Path(root) / name).is_symlink()]
        for name in sorted([*files, *links]):
            path = Path(root) / name
            if path != folder / METADATA:
                yield path


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
