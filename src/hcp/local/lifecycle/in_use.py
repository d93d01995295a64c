"""What running clusters have their programs from: artifacts of the cache, and the folder hcp is installed in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from hcp.local.state.layout import layouts
from hcp.local.supervisor import control


def user_of() -> Callable[[Path], str]:
    """Gives, for an artifact, who uses it; empty when nobody does."""
    told: dict[str, str] = {}
    for layout in layouts():
        if control.running(layout) is not None:
            told[layout.root.name] = "".join(_read(path) for path in (layout.processes, layout.run / "tools"))

    def user(artifact: Path) -> str:
        found = [name for name, text in told.items() if str(artifact) in text]
        return f"cluster '{found[0]}' runs from it (hcp local down --name {found[0]} stops it)" if found else ""

    return user


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def clusters_from(folder: Path) -> list[str]:
    """State folders of clusters whose supervisor, whoever started it, is run by a Python in this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "hcp.local.supervisor" in words and Path(words[0]).is_relative_to(folder.absolute()):
            found.append(words[words.index("hcp.local.supervisor") + 1])
    return sorted(found)


def main(words: list[str]) -> int:
    """For `make clean`: a cluster would go on without the programs that can end it."""
    for folder in words:
        for root in clusters_from(Path(folder)):
            name = Path(root).name
            print(f"Error: cluster '{name}' ({root}) runs out of {folder}", file=sys.stderr)
            print(f"Hint: {folder}/bin/hcp local down --name {name} --purge ends it for good", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
