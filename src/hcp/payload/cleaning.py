"""Giving disk space back: what the cache holds, and what of it nobody will ask for again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from hcp.payload.registry import Registry
from hcp.payload.removal import remove
from hcp.payload.store import Store

OLD = "artifacts of other versions"
NAMED = "artifacts"
FOLDERS = {"work": "unfinished builds", "go": "Go modules, compiled packages", "logs": "logs of builds"}
NOTES = "locks, records of builds"
BUILDING = "another run is building"


@dataclass
class Freed:
    """What a cleaning takes away, and what it leaves although it was asked for, with the reason."""

    what: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    kept: list[tuple[str, str]] = field(default_factory=list)
    before: int = 0
    after: int = 0

    @property
    def size(self) -> int:
        return sum(size for kind in self.what for _, size in self.what[kind])

    def note(self, kind: str, name: str, path: Path) -> None:
        self.what.setdefault(kind, []).append((name, disk_size(path)))


def clean(
    store: Store,
    registry: Registry,
    *,
    everything: bool = False,
    names: tuple[str, ...] = (),
    dry: bool = False,
    user: Callable[[Path], str] = lambda path: "",
) -> Freed:
    """Removes leftovers: killed builds, Go modules, logs, and artifacts of other versions of hcp.

    With `names` those artifacts go; with `everything` all there is. What another run is building stays, and so does
    what `user` says somebody runs programs from. `dry` only looks.
    """
    freed = Freed(before=disk_size(store.root))
    for name, key in store.artifacts():
        current = name in registry.names() and registry.key(name) == key
        if everything or name in names or (not current and not names):
            _artifact(store, name, key, NAMED if current else OLD, freed, dry, user)
    if not names:
        _leftovers(store, freed, dry, everything)
    freed.after = freed.before - freed.size if dry else disk_size(store.root)
    return freed


def _artifact(
    store: Store, name: str, key: str, kind: str, freed: Freed, dry: bool, user: Callable[[Path], str]
) -> None:
    path = store.artifact(name, key)
    if by := user(path):
        freed.kept.append((name, by))
        return
    with _alone(store, f"{name}-{key}", dry) as mine:
        if not mine:
            freed.kept.append((name, BUILDING))
            return
        freed.note(kind, name, path)
        if not dry:
            store.discard(name, key)


def _leftovers(store: Store, freed: Freed, dry: bool, everything: bool) -> None:
    """The work folders, modules and Go itself may be in use: then they stay."""
    with _alone(store, "go-modules", dry) as alone:
        for folder, kind in FOLDERS.items():
            path = store.root / folder
            if not path.exists():
                continue
            if not alone:
                freed.kept.append((kind, BUILDING))
                continue
            for child in sorted(path.iterdir()):
                freed.note(kind, child.name, child)
            if not dry:
                remove(path)
        if everything and not freed.kept:
            _last_things(store, freed, dry)


def _last_things(store: Store, freed: Freed, dry: bool) -> None:
    """With nothing left to protect, the locks, the notes and the empty folders go as well."""
    rest = [path for path in sorted(store.root.glob("*")) if path.name not in ("artifacts", *FOLDERS)]
    for path in rest:
        freed.note(NOTES, path.name, path)
        if not dry and path.is_dir():
            remove(path)
        elif not dry:
            path.unlink(missing_ok=True)
    if not dry:
        for path in [*(store.root / "artifacts").glob("*"), store.root / "artifacts", store.root]:
            with suppress(OSError):  # not ours, or filled again meanwhile
                path.rmdir()


@contextmanager
def _alone(store: Store, name: str, dry: bool) -> Iterator[bool]:
    """Looking must not even leave a lock file behind."""
    if dry and not (store.root / "locks" / f"{name}.lock").exists():
        yield True
        return
    with store.lock(name, wait=False) as mine:
        yield mine


def disk_size(path: Path) -> int:
    """Bytes below a folder. Others may be removing files meanwhile."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with suppress(OSError):
                total += Path(folder, name).lstat().st_size
    return total


def human_size(size: float) -> str:
    """1536 → 1.5 KiB."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
