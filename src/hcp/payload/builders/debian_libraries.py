"""Libraries for programs out of Debian packages: into `lib/`, and written into the programs as the place to look.

The place is relative to the program (`$ORIGIN`), so an artifact works wherever it lies and whoever starts it; nobody
has to set LD_LIBRARY_PATH, which every child process would inherit.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hcp.payload.context import BuildContext
from hcp.payload.debian import Package
from hcp.payload.linking.rules import EVERYWHERE
from hcp.payload.linking.tree import read_folder

# Last those of a package's own, where its libraries look by a path written into them.
_FOLDERS = ("usr/lib/*-linux-gnu", "lib/*-linux-gnu", "usr/lib", "lib", "usr/lib/*-linux-gnu/*")


def bring_libraries(ctx: BuildContext, root: Path, packages: dict[str, Package]) -> None:
    """Copies what the artifact's files need out of `root`, fetching packages until all is there or none is left.

    `packages` are those unpacked in `root` and grows. A library that cannot be found stays missing: the check of
    the finished artifact says so.
    """
    lib = ctx.out / "lib"
    while lacking := _lacking(ctx.out):
        if [library for library in lacking if _take(root, library, lib)]:
            continue
        more = sorted({name for package in packages.values() for name in package.libraries} - packages.keys())
        if not more:
            break
        packages.update(ctx.unpack_debs(more, root))
    _point_to(ctx, lib)


def _lacking(out: Path) -> list[str]:
    tree = read_folder(out)
    needed = {library for elf in tree.files.values() for library in elf.needed} - EVERYWHERE
    return sorted(library for library in needed if tree.find(f"lib/{library}") is None)


def _take(root: Path, library: str, lib: Path) -> bool:
    for pattern in _FOLDERS:
        for source in root.glob(f"{pattern}/{library}"):
            if source.is_file():
                lib.mkdir(exist_ok=True)
                shutil.copy2(source, lib / library)
                return True
    return False


def _point_to(ctx: BuildContext, lib: Path) -> None:
    """Writes the way to `lib/` into every file that needs something from there.

    As RPATH, which the loader reads before LD_LIBRARY_PATH: a setting meant for other programs cannot mix libraries.
    """
    tree = read_folder(ctx.out)
    patchelf: Path | None = None
    for path, elf in sorted(tree.files.items()):
        if not set(elf.needed) - EVERYWHERE:
            continue
        if patchelf is None:
            ctx.unpack_debs(["patchelf"], ctx.scratch / "tool")
            patchelf = ctx.scratch / "tool" / "usr" / "bin" / "patchelf"
        file = ctx.out / path
        file.chmod(file.stat().st_mode | 0o200)
        way = os.path.relpath(lib, file.parent)
        ctx.run([patchelf, "--force-rpath", "--set-rpath", "$ORIGIN" if way == "." else f"$ORIGIN/{way}", file])
