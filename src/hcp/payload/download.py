"""Files of official builds by URL, never used without a matching checksum."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
import time
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from hcp.errors import HcpError
from hcp.payload.checksums import sha256_file
from hcp.payload.component import Download
from hcp.payload.context import BuildContext
from hcp.payload.mirrors import configured

_STALL = 30.0  # seconds without a byte
_TRIES = 6
_LONGEST_PAUSE = 10.0
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")
_LATER = (408, 425, 429, 500, 502, 503, 504)


def fetch(item: Download, ctx: BuildContext) -> None:
    """Fetches one file, checks it and puts its members into the artifact."""
    target = ctx.scratch / "download"
    target.unlink(missing_ok=True)
    ctx.say(f"downloading {item.url}")
    wanted = item.sha256 or _published_sum(item)
    transfer(configured().url(item.url), target)
    found = sha256_file(target)
    if found != wanted:
        raise HcpError(f"{item.url} has the wrong checksum", cause=f"sha256 {found}, expected {wanted}")
    _place(target, item, ctx.out)
    target.unlink()


def _published_sum(item: Download) -> str:
    """The sum in the publisher's sums file: the line that names our file, or the only sum there is.

    GitHub keeps the sums of a release's files in the description of the release, as JSON.
    """
    if item.sums_url is None:
        raise HcpError(f"No checksum is known for {item.url}")
    text = read(configured().url(item.sums_url)).decode(errors="replace")
    name = item.url.rsplit("/", 1)[-1]
    sums = _release_sums(text, name) if text.lstrip().startswith("{") else _listed_sums(text, name)
    if len(sums) != 1:
        raise HcpError(f"{item.sums_url} names no checksum for {name}")
    return sums[0]


def _listed_sums(text: str, name: str) -> list[str]:
    return [
        match.group()
        for line in text.splitlines()
        if (match := _SHA256.search(line)) and line.split()[-1].lstrip("*./") in (name, match.group())
    ]


def _release_sums(text: str, name: str) -> list[str]:
    try:
        assets = json.loads(text)["assets"]
        digests = [str(asset.get("digest") or "") for asset in assets if asset["name"] == name]
    except (ValueError, KeyError, TypeError):
        return []
    return [digest.removeprefix("sha256:") for digest in digests if digest.startswith("sha256:")]


def read(url: str, limit: int = 8 << 20) -> bytes:
    """A small file in memory."""
    error: Exception | None = None
    for attempt in range(_TRIES):
        try:
            with _open(url, 0) as answer:
                content: bytes = answer.read(limit)
                return content
        except _Again as again:
            error = again
            _pause(attempt, again)
    raise HcpError(f"{url} cannot be downloaded", cause=str(error))


def transfer(url: str, target: Path) -> None:
    """A file onto the disk; a connection that breaks is continued where it broke, if the server can do that."""
    stuck = 0
    while True:
        have = target.stat().st_size if target.exists() else 0
        try:
            _append(url, target, have)
            return
        except _Again as again:
            came = (target.stat().st_size if target.exists() else 0) > have
            stuck = 0 if came else stuck + 1
            if stuck >= _TRIES:
                raise HcpError(f"{url} cannot be downloaded", cause=str(again)) from again
            _pause(stuck, again)


class _Again(Exception):
    """Worth another try, after `seconds` if the server said so."""

    def __init__(self, words: str, seconds: float | None = None) -> None:
        super().__init__(words)
        self.seconds = seconds


def _pause(attempt: int, again: _Again) -> None:
    time.sleep(min(_LONGEST_PAUSE, again.seconds if again.seconds is not None else 0.25 * 2**attempt))


def _append(url: str, target: Path, have: int) -> None:
    with _open(url, have) as answer:
        if have and answer.status != 206:
            have = 0  # this server begins anew
        length = answer.headers.get("Content-Length")
        came = 0
        with target.open("ab" if have else "wb") as handle:
            try:
                while chunk := answer.read(1 << 18):
                    handle.write(chunk)
                    came += len(chunk)
            except (OSError, HTTPException) as error:
                raise _Again(str(error) or type(error).__name__) from error
    if length is not None and came < int(length):
        raise _Again(f"the connection ended after {have + came} of {have + int(length)} bytes")


def _open(url: str, start: int) -> HTTPResponse:
    headers = {"User-Agent": "hcp", "Accept-Encoding": "identity", **({"Range": f"bytes={start}-"} if start else {})}
    try:
        answer: HTTPResponse = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_STALL)
    except urllib.error.HTTPError as error:
        with error:
            if error.code in _LATER:
                raise _Again(f"HTTP {error.code}", _retry_after(error)) from error
        raise HcpError(f"{url} cannot be downloaded", cause=f"HTTP {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _Again(str(error.reason)) from error
    except (OSError, HTTPException) as error:
        raise _Again(str(error) or type(error).__name__) from error
    if answer.headers.get_content_type() == "text/html":
        answer.close()
        raise HcpError(f"{url} answers with a web page instead of a file", hint="Does this network want a login first?")
    return answer


def _retry_after(error: urllib.error.HTTPError) -> float | None:
    value = error.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None


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
