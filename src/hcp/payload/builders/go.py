"""Commands of Go modules, pinned by the recipe's `go.mod` and `go.sum`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from hcp.payload.context import BuildContext
from hcp.payload.gotool import Go
from hcp.payload.versions import recipe_dir

# With cgo Go would look up hosts and users by the C library. Everything that can open a connection differs then, and
# would be compiled a second time for the few commands that need C for something else.
_NO_C_LOOKUPS = ("netgo", "osusergo")


def build(ctx: BuildContext, entry: dict[str, Any]) -> None:
    if packages := entry.get("packages"):
        ctx.apt(*packages)
    source = copy_recipe(ctx)
    go = Go(ctx)
    use_changed_source(go, source, entry)
    build_commands(go, source, entry)
    build_tests(go, source, entry)
    copy_files(go, source, entry)


def copy_recipe(ctx: BuildContext, name: str = "") -> Path:
    """The recipe in a writable place: package data may be read-only. Another component's, if it is named."""
    source = ctx.scratch / "recipe"
    shutil.copytree(recipe_dir(name or ctx.component.name), source)
    return source


def go_env(entry: dict[str, Any], *, cgo: bool = False) -> dict[str, str]:
    return {"CGO_ENABLED": "1" if cgo or entry.get("cgo") else "0", **entry.get("env", {})}


def build_commands(go: Go, source: Path, entry: dict[str, Any]) -> None:
    """Builds every command of the entry into the artifact's `bin/`."""
    ldflags, with_cgo = linker_flags(entry), entry.get("cgo_commands", ())
    tags = [*entry.get("tags", ()), *(_NO_C_LOOKUPS if with_cgo else ())]
    for cgo in (False, True):
        packages = {name: package for name, package in entry["commands"].items() if (name in with_cgo) == cgo}
        go.build(packages, go.ctx.out / "bin", cwd=source, ldflags=ldflags, tags=tags, env=go_env(entry, cgo=cgo))


def build_tests(go: Go, source: Path, entry: dict[str, Any]) -> None:
    """Builds test suites (name → package) as programs, next to the commands."""
    for name, package in entry.get("tests", {}).items():
        target = go.ctx.out / "bin" / name
        go.build_test(package, target, cwd=source, ldflags=linker_flags(entry), env=go_env(entry))


def linker_flags(entry: dict[str, Any]) -> list[str]:
    return [flag.format(version=entry["version"]) for flag in entry.get("ldflags", ())]


def use_changed_source(go: Go, source: Path, entry: dict[str, Any]) -> None:
    """Points the recipe to a changed copy of the module, if the recipe changes it at all.

    Changes are the recipe's patches, and `instead`: a file of the module that is used in place of another.
    """
    patches = sorted(source.glob("*.patch"))
    instead: dict[str, str] = entry.get("instead", {})
    if not patches and not instead:
        return
    module = go.module_dir(entry["module"], cwd=source, env=go_env(entry))
    copy = source / "module"
    go.ctx.say("changing the source")
    shutil.copytree(module, copy, ignore=shutil.ignore_patterns("vendor", "*_test.go"), copy_function=shutil.copyfile)
    for name, original in instead.items():
        # A file for another machine says so in its first lines; its new name says where it is used now.
        (copy / name).write_text(without_build_tags((copy / original).read_text()))
    if patches:
        go.ctx.apt("patch")
    for patch in patches:
        go.ctx.run(["patch", "-p1", "-i", patch], cwd=copy)
    go.run("mod", "edit", f"-replace={entry['module']}=./module", cwd=source)


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
