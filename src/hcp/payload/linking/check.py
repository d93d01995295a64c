"""Holding artifacts to the rule, and telling what was looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hcp.errors import HcpError
from hcp.payload.linking.hints import package_hint
from hcp.payload.linking.rules import EVERYWHERE, Missing, missing, missing_of
from hcp.payload.linking.tree import Tree, read_folder, read_image

_SHOWN = 5


@dataclass(frozen=True)
class Line:
    """One program or library of an artifact; one line for all of an image."""

    file: str
    brought: tuple[str, ...]
    """Libraries in the artifact."""
    system: tuple[str, ...]
    """Libraries that every Linux has."""
    elsewhere: str = ""
    """The root file system that has the others."""
    glibc: str = ""


@dataclass(frozen=True)
class Findings:
    lines: tuple[Line, ...]
    missing: tuple[Missing, ...]


def inspect(artifact: Path, runs_in: Mapping[str, str] | None = None) -> Findings:
    """Looks at an artifact. `runs_in`: file → the root file system it is only ever started in (checked there)."""
    if is_image(artifact):
        tree = read_image(artifact / "image")
        return Findings(_summary(tree), tuple(missing(tree, whole_system=True)))
    tree = read_folder(artifact)
    elsewhere = runs_in or {}
    lacking = [item for item in missing(tree, whole_system=False) if item.file not in elsewhere]
    return Findings(tuple(_line(tree, path, elsewhere) for path in sorted(tree.files)), tuple(lacking))


def is_image(artifact: Path) -> bool:
    return (artifact / "image" / "index.json").is_file()


def _summary(tree: Tree) -> tuple[Line, ...]:
    """An image in one line; hundreds of them would say no more."""
    if not tree.files:
        return ()
    elves = tree.files.values()
    programs = sum(bool(elf.interpreter) for elf in elves)
    static = sum(not (elf.interpreter or elf.needed or elf.soname) for elf in elves)
    counts = {"programs": programs, "static programs": static, "libraries": len(elves) - programs - static}
    return (Line(", ".join(f"{count} {what}" for what, count in counts.items() if count), (), ()),)


def _line(tree: Tree, path: str, elsewhere: Mapping[str, str]) -> Line:
    elf = tree.files[path]
    others = tuple(name for name in elf.needed if name not in EVERYWHERE)
    return Line(
        path,
        () if path in elsewhere else others,
        tuple(name for name in elf.needed if name in EVERYWHERE),
        f"{elsewhere[path]}: {' '.join(others)}" if path in elsewhere and others else "",
        ".".join(map(str, elf.glibc)),
    )


def demand(component: str, artifact: Path, runs_in: Mapping[str, str] | None = None, *, official: bool = False) -> None:
    """Refuses an artifact with a program that could not be started, or could only be started here.

    An image that its publisher put together is left alone: it may hold plug-ins that nobody there uses.
    """
    if official and is_image(artifact):
        return
    refuse(component, inspect(artifact, runs_in).missing)


def demand_inside(component: str, root: Tree, paths: Iterable[str]) -> None:
    """The same for files in a whole root file system."""
    refuse(component, [item for path in paths for item in missing_of(root, path, whole_system=True)])


def refuse(component: str, found: Iterable[Missing]) -> None:
    lacking = list(found)
    if not lacking:
        return
    shown = [f"{item.file} needs {item.library} ({package_hint(item.library)})" for item in lacking[:_SHOWN]]
    if len(lacking) > _SHOWN:
        shown.append(f"and {len(lacking) - _SHOWN} more")
    raise HcpError(
        f"{component} would not start everywhere, a library is missing: {'; '.join(shown)}",
        hint="Name the package under `unpack` (or the packages of the root file system) of this component.",
    )
