"""Official builds by URL, never used without a matching checksum."""

from __future__ import annotations

import re
import shutil
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from hcp.errors import HcpError
from hcp.payload.checksums import sha256_file
from hcp.payload.component import Download
from hcp.payload.context import BuildContext

_TIMEOUT = 60
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")


def fetch_all(downloads: Iterable[Download], ctx: BuildContext) -> None:
    """Fetches every file of a component, checks it and puts its members into the artifact."""
    for number, item in enumerate(downloads):
        ctx.say(f"downloading {item.url}")
        target = ctx.scratch / f"download-{number}"
        wanted = item.sha256 or _published_sum(item)
        _fetch(item.url, target)
        found = sha256_file(target)
        if found != wanted:
            raise HcpError(f"{item.url} has the wrong checksum", cause=f"sha256 {found}, expected {wanted}")
        _place(target, item, ctx.out)
        target.unlink()


def _published_sum(item: Download) -> str:
    """The sum in the publisher's sums file: the line that names our file, or the only sum there is."""
    if item.sums_url is None:
        raise HcpError(f"No checksum is known for {item.url}")
    text = _read(item.sums_url).decode(errors="replace")
    name = item.url.rsplit("/", 1)[-1]
    sums = [
        match.group()
        for line in text.splitlines()
        if (match := _SHA256.search(line)) and line.split()[-1].lstrip("*./") in (name, match.group())
    ]
    if len(sums) != 1:
        raise HcpError(f"{item.sums_url} names no checksum for {name}")
    return sums[0]


def _read(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            content: bytes = answer.read()
            return content
    except (urllib.error.URLError, OSError) as error:
        raise HcpError(f"{url} cannot be downloaded", cause=str(error)) from error


def _fetch(url: str, target: Path) -> None:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer, target.open("wb") as handle:
            shutil.copyfileobj(answer, handle, 1 << 20)
    except (urllib.error.URLError, OSError) as error:
        raise HcpError(f"{url} cannot be downloaded", cause=str(error)) from error


def _place(source: Path, item: Download, out: Path) -> None:
    """Copies the wanted members; the member "." is the downloaded file itself."""
    if set(item.members) == {"."}:
        _copy_out(source, out / item.members["."])
        return
    try:
        with tarfile.open(source) as archive:
            names = {name.removeprefix("./"): name for name in archive.getnames()}
            for member, path in item.members.items():
                stream = archive.extractfile(names[member]) if member in names else None
                if stream is None:
                    raise HcpError(f"{item.url} does not hold {member}")
                target = out / path
                target.parent.mkdir(parents=True, exist_ok=True)
                with stream, target.open("wb") as handle:
                    shutil.copyfileobj(stream, handle, 1 << 20)
                target.chmod(0o755)
    except tarfile.TarError as error:
        raise HcpError(f"{item.url} is not a readable archive", cause=str(error)) from error


def _copy_out(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755)
