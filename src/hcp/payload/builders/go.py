"""Commands of Go modules, pinned by the recipe's `go.mod` and `go.sum`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from hcp.payload.context import BuildContext
from hcp.payload.gotool import Go
from hcp.payload.versions import recipe_dir


def build(ctx: BuildContext, entry: dict[str, Any]) -> None:
    if packages := entry.get("packages"):
        ctx.apt(*packages)
    build_commands(Go(ctx), copy_recipe(ctx), entry, env=go_env(entry))


def copy_recipe(ctx: BuildContext) -> Path:
    """The recipe in a writable place: package data may be read-only."""
    source = ctx.scratch / "recipe"
    shutil.copytree(recipe_dir(ctx.component.name), source)
    return source


def go_env(entry: dict[str, Any]) -> dict[str, str]:
    return {"CGO_ENABLED": "1" if entry.get("cgo") else "0", **entry.get("env", {})}


def build_commands(go: Go, source: Path, entry: dict[str, Any], *, env: dict[str, str], mod: str | None = None) -> None:
    """Builds every command of the entry into the artifact's `bin/`."""
    ldflags = [flag.format(version=entry["version"]) for flag in entry.get("ldflags", ())]
    for command, package in entry["commands"].items():
        output = go.ctx.out / "bin" / command
        go.build(package, output, cwd=source, ldflags=ldflags, tags=entry.get("tags", ()), mod=mod, env=env)
