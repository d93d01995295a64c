"""What `payload check` prints: one row per program or library, one per image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hcp.payload.component import Component
from hcp.payload.linking.check import Line, inspect
from hcp.payload.linking.rules import Missing, missing_of
from hcp.payload.linking.tree import Tree, read_folder, read_image, read_tar
from hcp.payload.registry import Registry, default_registry
from hcp.payload.store import Store

HEADER = ("COMPONENT", "FILE", "LIBRARIES", "C LIBRARY")


@dataclass(frozen=True)
class Report:
    rows: list[tuple[str, str, str, str]]
    missing: dict[str, list[Missing]]
    summary: str


def check_all(names: Sequence[str] = (), registry: Registry | None = None, store: Store | None = None) -> Report:
    """Looks at the named components, or at all, as far as they are built."""
    registry, store = registry or default_registry(), store or Store()
    rows: list[tuple[str, str, str, str]] = []
    lacking: dict[str, list[Missing]] = {}
    looked_at = 0
    for name in names or registry.names():
        component = registry.get(name)
        path = store.find(name, registry.key(name))
        if path is None:
            continue
        looked_at += 1
        found = inspect(path, component.runs_in)
        rows += [_row(name, line) for line in found.lines]
        all_missing = [*found.missing, *_inside(component, path, registry, store)]
        if all_missing:
            lacking[name] = all_missing
    count = sum(len(found) for found in lacking.values())
    summary = f"{looked_at} components checked, {count or 'no'} missing libraries"
    return Report(rows, lacking, summary)


def _row(name: str, line: Line) -> tuple[str, str, str, str]:
    if line.elsewhere:
        libraries = f"in {line.elsewhere}"
    else:
        libraries = " ".join(line.brought) or ("only the C library" if line.system else "-")
    return name, line.file, libraries, f">= {line.glibc}" if line.glibc else "-"


def _inside(component: Component, path: Path, registry: Registry, store: Store) -> list[Missing]:
    """Programs that run in a root file system, looked up there if it is built."""
    own = read_folder(path) if component.runs_in else Tree()
    found: list[Missing] = []
    for file, rootfs in component.runs_in.items():
        root = store.find(rootfs, registry.key(rootfs))
        if root is not None and file in own.files:
            found += missing_of(_root(root), file, whole_system=True, ask_for=own)
    return found


def _root(artifact: Path) -> Tree:
    archive = artifact / "root.tar"
    return read_tar(archive) if archive.is_file() else read_image(artifact / "image")
