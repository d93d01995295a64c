"""Files that a Go module carries besides its code, such as definitions of its kinds. Nothing is compiled for that."""

from __future__ import annotations

from typing import Any

from hcp.payload import gozip
from hcp.payload.context import BuildContext
from hcp.payload.official import ModuleFiles


def build(ctx: BuildContext, entry: dict[str, Any]) -> None:
    files = entry["files"]
    patterns = tuple([files] if isinstance(files, str) else files)
    item = ModuleFiles(entry["module"], f"v{entry['version']}", patterns, entry["folder"])
    gozip.fetch(item, ctx, recipe=entry.get("sums", ""))
