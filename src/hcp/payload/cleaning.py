"""Giving disk space back: what the cache holds, and what of it nobody will ask for again."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from hcp.payload.registry import Registry
from hcp.payload.store import Store


@dataclass
class Freed:
    """What a cleaning took away."""

    what: list[str] = field(default_factory=list)
    size: int = 0


def clean(store: Store, registry: Registry, *, everything: bool = False, names: tuple[str, ...] = ()) -> Freed:
    """Removes leftovers: killed builds, Go modules, logs, and artifacts of other versions of hcp.

    With `names` those artifacts go; with `everything` all artifacts go. What another run is building stays.
    """
    freed = Freed()
    for name, key in store.artifacts():
        current = name in registry.names() and registry.key(name) == key
        if everything or name in names or not current:
            with store.lock(f"{name}-{key}", wait=False) as mine:
                if mine:
                    _note(freed, f"artifact {name}", store.artifact(name, key))
                    store.discard(name, key)
    if not names:
        _clean_leftovers(store, freed)
    return freed


def _clean_leftovers(store: Store, freed: Freed) -> None:
    """The work folders, modules and Go itself may be in use: then they stay."""
    with store.lock("go-modules", wait=False) as alone:
        if not alone:
            return
        for folder in ("work", "go", "logs"):
            path = store.root / folder
            if path.exists():
                _note(freed, folder, path)
                shutil.rmtree(path, ignore_errors=True)


def _note(freed: Freed, what: str, path: Path) -> None:
    freed.what.append(what)
    freed.size += disk_size(path)


def disk_size(path: Path) -> int:
    """Bytes below a folder."""
    return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir() or file.is_symlink())


def human_size(size: float) -> str:
    """1536 → 1.5 KiB."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
