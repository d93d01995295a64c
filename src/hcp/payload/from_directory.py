"""Taking a component from a folder the user points to."""

from __future__ import annotations

import shutil
from pathlib import Path

from hcp.payload.component import Component


def holds(folder: Path, component: Component) -> bool:
    """Whether the folder has a component laid out in one of the two ways that `take_from` knows."""
    if not component.outputs:
        return False
    if all((folder / component.name / path).exists() for path in component.outputs):
        return True
    return all(path.startswith("bin/") for path in component.outputs) and any(
        all((place / Path(path).name).is_file() for path in component.outputs) for place in (folder, folder / "bin")
    )


def take_from(folder: Path, component: Component, out: Path) -> bool:
    """Copies a component from `folder` into `out`; False when the folder does not hold all of it.

    The folder holds either `<component>/` laid out like the artifact, or (for components that are only
    binaries) the binaries themselves, directly or in `bin/`.
    """
    if not component.outputs:
        return False
    own = folder / component.name
    if all((own / path).exists() for path in component.outputs):
        shutil.copytree(own, out, symlinks=True, dirs_exist_ok=True)
        return True
    if not all(path.startswith("bin/") for path in component.outputs):
        return False
    for place in (folder, folder / "bin"):
        found = {path: place / Path(path).name for path in component.outputs}
        if all(source.is_file() for source in found.values()):
            for path, source in found.items():
                (out / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, out / path)
                (out / path).chmod(0o755)
            return True
    return False
