"""Files out of a Go module's archive, checked against the recipe's `go.sum`; no Go is needed for it."""

from __future__ import annotations

import fnmatch
import zipfile
from pathlib import Path

from hcp.errors import HcpError
from hcp.gomodules import module_hash
from hcp.payload.context import BuildContext
from hcp.payload.download import transfer
from hcp.payload.mirrors import configured
from hcp.payload.official import ModuleFiles
from hcp.payload.versions import recipe_dir


def fetch(item: ModuleFiles, ctx: BuildContext, *, recipe: str = "") -> None:
    """`recipe`: the component whose go.sum has the checksum, if it is another one."""
    ctx.say(f"downloading the source of {item.module}")
    target = ctx.scratch / "module.zip"
    transfer(configured().url(item.url), target)
    wanted = _pinned(recipe_dir(recipe or ctx.component.name) / "go.sum", item)
    try:
        with zipfile.ZipFile(target) as archive:
            found = module_hash(archive)
            if found != wanted:
                raise HcpError(f"{item.url} has the wrong checksum", cause=f"{found}, expected {wanted}")
            _copy(archive, item, ctx.out)
    except zipfile.BadZipFile as error:
        raise HcpError(f"{item.url} is no module archive", cause=str(error)) from error
    target.unlink()


def _pinned(sums: Path, item: ModuleFiles) -> str:
    for line in sums.read_text().splitlines():
        words = line.split()
        if words[:2] == [item.module, item.version]:
            return words[2]
    raise HcpError(f"{sums.parent.name}/go.sum has no checksum of {item.module} {item.version}")


def _copy(archive: zipfile.ZipFile, item: ModuleFiles, out: Path) -> None:
    prefix = f"{item.module}@{item.version}/"
    names = set()
    for pattern in item.patterns:
        found = [name for name in archive.namelist() if fnmatch.fnmatchcase(name.removeprefix(prefix), pattern)]
        if not found:
            raise HcpError(f"{item.module} holds no {pattern}")
        names |= set(found)
    for name in sorted(names):
        target = out / item.folder / name.rsplit("/", 1)[-1]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read(name))
