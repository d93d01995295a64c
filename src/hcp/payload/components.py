"""The components described by `versions.toml`: binaries and manifests of the upstream projects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

from hcp.payload.component import Component, Download, hash_files
from hcp.payload.context import BuildContext
from hcp.payload.official import ModuleFiles, OfficialImage
from hcp.payload.versions import recipe_dir, table

_SOURCE = "taken from the source"
_HOW = {"go": "built with Go", "debian": "taken from Debian packages", "definitions": _SOURCE, "module_files": _SOURCE}


def components() -> Iterator[Component]:
    for name, entry in table()["component"].items():
        yield component_from(name, entry)


def component_from(name: str, entry: dict[str, Any]) -> Component:
    """A component from its entry in `versions.toml`."""
    kind: str = entry["kind"]
    return Component(
        name=name,
        version=entry["version"],
        build=_build_function(kind, entry),
        deps=tuple(entry.get("deps", ())),
        inputs=partial(_inputs, name, entry),
        outputs=_outputs(entry),
        downloads=tuple(_downloads(entry)),
        finish_download=_finish_function(kind, entry),
        unfit=partial(str, entry.get("no_download", "")),
        summary=entry.get("summary", ""),
        how=_HOW.get(kind, _HOW["go"]),
        compiles=kind not in _HOW or kind == "go",
        on_request=entry.get("on_request", False),
        runs_in=entry.get("runs_in", {}),
    )


def _build_function(kind: str, entry: dict[str, Any]) -> Callable[[BuildContext], None]:
    def build(ctx: BuildContext) -> None:
        import_module(f"hcp.payload.builders.{kind}").build(ctx, entry)

    return build


def _finish_function(kind: str, entry: dict[str, Any]) -> Callable[[BuildContext], None] | None:
    if not any("files" in item for item in entry.get("download", ())):
        return None

    def finish(ctx: BuildContext) -> None:
        import_module(f"hcp.payload.builders.{kind}").finish_download(ctx, entry)

    return finish


def _inputs(name: str, entry: dict[str, Any]) -> str:
    """Flags and recipe files; not the summary, nor where official builds are and programs run: no file changes."""
    flags = {key: value for key, value in entry.items() if key not in ("summary", "download", "no_download", "runs_in")}
    recipe = recipe_dir(name)
    return json.dumps(flags, sort_keys=True) + (hash_files(recipe) if recipe.is_dir() else "")


def _outputs(entry: dict[str, Any]) -> tuple[str, ...]:
    paths = [f"bin/{command}" for command in (*entry.get("commands", {}), *entry.get("tests", {}))]
    for members in entry.get("unpack", {}).values():
        paths += [path for path in members.values() if not path.endswith("/")]
    return (*paths, *entry.get("outputs", ()))


def _downloads(entry: dict[str, Any]) -> Iterator[Download | OfficialImage | ModuleFiles]:
    version = entry["version"]
    for item in entry.get("download", ()):
        if "image" in item:
            yield OfficialImage(item["image"].format(version=version), item["members"])
            continue
        if "files" in item:
            yield ModuleFiles(entry["module"], f"v{version}", (item["files"],), item["folder"])
            continue
        if "each" in item:  # one file per command, or per one of some, named like it
            for command in item.get("commands", entry["commands"]):
                url = item["each"].format(version=version, command=command)
                yield Download(url, {".": f"bin/{command}"}, sums_url=url + item["sums_suffix"])
            continue
        yield Download(
            item["url"].format(version=version),
            {member.format(version=version): path for member, path in item["members"].items()},
            sha256=item.get("sha256"),
            sums_url=item["sums_url"].format(version=version) if "sums_url" in item else None,
        )
