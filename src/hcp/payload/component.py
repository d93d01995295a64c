"""What a component is: one unit of building, with a name, a version and a finished directory as result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hcp.payload.context import BuildContext
    from hcp.payload.official import ModuleFiles, OfficialImage


@dataclass(frozen=True)
class Download:
    """One file of an official build. `members` maps a path in the archive to a path in the artifact.

    The checksum is pinned (`sha256`), or read from the sums file that the publisher keeps next to the build
    (`sums_url`); a download with neither is never used.
    """

    url: str
    members: Mapping[str, str]
    sha256: str | None = None
    sums_url: str | None = None


@dataclass(frozen=True)
class Component:
    """A unit of building. Two components with the same key have the same content, so the key names the artifact.

    `inputs` returns text that changes whenever the result should: recipe files, flags, revision. It is called
    late, so that merely listing components reads no files. `build` fills `ctx.out`.
    `outputs` are paths that must exist in the finished artifact; they also say what `--from DIR` has to hold.
    """

    name: str
    version: str
    build: Callable[[BuildContext], None]
    deps: tuple[str, ...] = ()
    inputs: Callable[[], str] = str
    outputs: tuple[str, ...] = ()
    downloads: tuple[Download | OfficialImage | ModuleFiles, ...] = ()
    """Where the official build is; all of them together make the artifact."""
    finish_download: Callable[[BuildContext], None] | None = None
    """What is still to do with what was downloaded."""
    unfit: Callable[[], str] = str
    """Why the official build cannot be had, or not be used on this machine; empty when it can."""
    summary: str = ""
    how: str = "built"
    """One or two words for the progress line, such as "built with Go" or "from Debian packages"."""
    compiles: bool = False
    """Keeps every core busy for long; what does not may be made beside it."""
    on_request: bool = False
    """Left out when everything is built: only testing hcp itself needs it."""
    runs_in: Mapping[str, str] = field(default_factory=dict)
    """Program → the root file system it is only ever started in; its libraries are looked for there."""


def component_key(component: Component, dep_keys: Mapping[str, str]) -> str:
    """The content address: recipe, version and flags of the component and of everything below it."""
    document: dict[str, Any] = {
        "name": component.name,
        "version": component.version,
        "inputs": component.inputs(),
        "outputs": list(component.outputs),
        "deps": {name: dep_keys[name] for name in sorted(component.deps)},
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:20]


def hash_files(root: Path, paths: Iterable[Path] | None = None) -> str:
    """A digest over names and content of files below `root` (all of them, unless `paths` says which)."""
    chosen = sorted(paths) if paths is not None else sorted(p for p in root.rglob("*") if p.is_file())
    digest = hashlib.sha256()
    for path in chosen:
        if "__pycache__" in path.parts:
            continue
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
