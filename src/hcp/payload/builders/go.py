"""Commands of Go modules, pinned by the recipe's `go.mod` and `go.sum`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from hcp.payload.context import BuildContext
from hcp.payload.gotool import Go
from hcp.payload.versions import recipe_dir


def build(ctx: BuildContext, entry: dict[str, Any]) -> None:
    if packages := entry.get("packages"):
        ctx.apt(*packages)
    source = copy_recipe(ctx)
    go = Go(ctx)
    flags = ["-overlay", str(overlay)] if (overlay := patched(go, source, entry)) else []
    build_commands(go, source, entry, flags=flags)
    copy_files(go, source, entry)


def copy_recipe(ctx: BuildContext) -> Path:
    """The recipe in a writable place: package data may be read-only."""
    source = ctx.scratch / "recipe"
    shutil.copytree(recipe_dir(ctx.component.name), source)
    return source


def go_env(entry: dict[str, Any], *, cgo: bool = False) -> dict[str, str]:
    return {"CGO_ENABLED": "1" if cgo or entry.get("cgo") else "0", **entry.get("env", {})}


def build_commands(go: Go, source: Path, entry: dict[str, Any], *, flags: list[str]) -> None:
    """Builds every command of the entry into the artifact's `bin/`."""
    ldflags = [flag.format(version=entry["version"]) for flag in entry.get("ldflags", ())]
    with_cgo = entry.get("cgo_commands", ())
    for cgo in (False, True):
        packages = {name: package for name, package in entry["commands"].items() if (name in with_cgo) == cgo}
        env = go_env(entry, cgo=cgo)
        go.build(packages, go.ctx.out / "bin", cwd=source, ldflags=ldflags, tags=entry.get("tags", ()),
                 flags=flags, env=env)  # fmt: skip


def patched(go: Go, source: Path, entry: dict[str, Any]) -> Path | None:
    """Changed files of the module, as an overlay that Go reads instead of the originals.

    They come from the recipe's patches, and from `instead`: a file of the module that is used in place of another.
    """
    patches = sorted(source.glob("*.patch"))
    instead: dict[str, str] = entry.get("instead", {})
    if not patches and not instead:
        return None
    module = go.module_dir(entry["module"], cwd=source, env=go_env(entry))
    copy = go.ctx.scratch / "patched"
    names = {name: name for patch in patches for name in patched_files(patch.read_text())} | instead
    for name, original in names.items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        text = (module / original).read_text()
        # A file for another machine says so in its first lines; its new name says where it is used now.
        (copy / name).write_text(text if name == original else without_build_tags(text))
    if patches:
        go.ctx.apt("patch")
    for patch in patches:
        go.ctx.run(["patch", "-p1", "-i", patch], cwd=copy)
    overlay = go.ctx.scratch / "overlay.json"
    overlay.write_text(json.dumps({"Replace": {str(module / name): str(copy / name) for name in names}}))
    return overlay


def patched_files(patch: str) -> list[str]:
    """The files that a unified diff changes."""
    return [line.split("\t")[0].removeprefix("--- a/") for line in patch.splitlines() if line.startswith("--- a/")]


def without_build_tags(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(("//go:build", "// +build")))


def copy_files(go: Go, source: Path, entry: dict[str, Any]) -> None:
    """Copies files of the module's source into the artifact: manifests, configuration."""
    files: dict[str, str] = entry.get("files", {})
    if not files:
        return
    module = go.module_dir(entry["module"], cwd=source, env=go_env(entry))
    for name, target in files.items():
        place = go.ctx.out / target
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(module / name, place)
