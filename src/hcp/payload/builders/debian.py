"""Files out of Debian packages, without installing the packages, with the libraries they need."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from hcp.errors import HcpError
from hcp.payload.builders.debian_libraries import bring_libraries
from hcp.payload.context import BuildContext


def build(ctx: BuildContext, entry: dict[str, Any]) -> None:
    wanted: dict[str, dict[str, str]] = entry["unpack"]
    root = ctx.scratch / "root"
    packages = ctx.unpack_debs(list(wanted), root)
    for members in wanted.values():
        for pattern, target in members.items():
            _copy(root, pattern, ctx.out / target, into_folder=target.endswith("/"))
    bring_libraries(ctx, root, packages)
    lines = [f"{name} {package.version}" for name, package in sorted(packages.items())]
    (ctx.out / "packages.txt").write_text("\n".join(lines) + "\n")


def _copy(root: Path, pattern: str, target: Path, *, into_folder: bool) -> None:
    found = sorted(root.glob(pattern))
    if not found:
        raise HcpError(f"A Debian package does not hold {pattern} any more")
    for source in found:
        place = target / source.name if into_folder else target
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(source, place, follow_symlinks=False)
            if not place.is_symlink():
                place.chmod(place.stat().st_mode & 0o777)  # nothing in a cache runs with more rights than its caller
