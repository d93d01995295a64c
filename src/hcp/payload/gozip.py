"""Files out of a Go module's archive, checked against the recipe's `go.sum`; no Go is needed for it."""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import os
import zipfile
from pathlib import Path

from hcp.errors import HcpError
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


def proxy() -> str:
    """The first module proxy that Go would ask."""
    for word in os.environ.get("GOPROXY", "").replace("|", ",").split(","):
        if word.startswith(("http://", "https://")):
            return word.rstrip("/")
    return "https://proxy.golang.org"


def module_hash(archive: zipfile.ZipFile) -> str:
    """The sum that go.sum has for a module: over names and hashes of its files, in the order of their names."""
    lines = []
    for name in sorted(info.filename for info in archive.infolist() if not info.is_dir()):
        digest = hashlib.sha256()
        with archive.open(name) as content:
            while chunk := content.read(1 << 20):
                digest.update(chunk)
        lines.append(f"{digest.hexdigest()}  {name}\n")
    return "h1:" + base64.b64encode(hashlib.sha256("".join(lines).encode()).digest()).decode()


def _pinned(sums: Path, item: ModuleFiles) -> str:
    for line in sums.read_text().splitlines():
        words = line.split()
        if words[:2] == [item.module, item.version]:
            return words[2]
    raise HcpError(f"{sums.parent.name}/go.sum has no checksum of {item.module} {item.version}")


def _copy(archive: zipfile.ZipFile, item: ModuleFiles, out: Path) -> None:
    prefix = f"{item.module}@{item.version}/"
    names = [name for name in archive.namelist() if fnmatch.fnmatchcase(name.removeprefix(prefix), item.pattern)]
    if not names:
        raise HcpError(f"{item.module} holds no {item.pattern}")
    for name in sorted(names):
        target = out / item.folder / name.rsplit("/", 1)[-1]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read(name))
