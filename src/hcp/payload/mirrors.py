"""Other places for what publishers offer: a company's mirror.

`HCP_MIRRORS` is a list `place=other,…`, or the path of a file with one such line each (`#` begins a comment). A place
with a scheme is the beginning of a URL; one without is a registry, or a path in it:

    https://github.com=https://mirror.example.com/github
    quay.io=mirror.example.com:5000/quay
    docker.io=http://127.0.0.1:5000

Checksums stay what they are, so a mirror needs no trust beyond its network.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hcp.errors import HcpError
from hcp.oci.mirrors import Mirror

VARIABLE = "HCP_MIRRORS"


@dataclass(frozen=True)
class Mirrors:
    """Where to ask instead. The longest place that fits decides, and nobody else is asked then."""

    urls: tuple[tuple[str, str], ...] = ()
    images: tuple[Mirror, ...] = ()
    plain_http: frozenset[str] = frozenset()

    def url(self, url: str) -> str:
        for place, other in self.urls:
            if url == place or url.startswith(place.rstrip("/") + "/"):
                return other.rstrip("/") + url[len(place.rstrip("/")) :]
        return url


def configured() -> Mirrors:
    """What the environment says."""
    given = os.environ.get(VARIABLE, "").strip()
    if not given:
        return Mirrors()
    if "=" in given:
        return parse(given.split(","))
    try:
        return parse(Path(given).read_text().splitlines())
    except OSError as error:
        raise HcpError(f"{VARIABLE} names the file {given}, which cannot be read", cause=error.strerror) from error


def parse(lines: list[str]) -> Mirrors:
    urls, images, plain = [], [], set()
    for line in lines:
        text = line.partition("#")[0].strip()
        if not text:
            continue
        place, _, other = (part.strip() for part in text.partition("="))
        if not place or not other:
            raise HcpError(
                f'"{text}" in {VARIABLE} is no mirror',
                hint="Write place=other, such as https://github.com=https://mirror.example.com/github",
                exit_code=2,
            )
        if "://" in place:
            urls.append((place, other))
            continue
        scheme, _, bare = other.rpartition("://")
        if scheme == "http":
            plain.add(bare.partition("/")[0])
        images.append(Mirror(place, (bare.rstrip("/"),), never_source=True))
    urls.sort(key=lambda pair: len(pair[0]), reverse=True)
    return Mirrors(tuple(urls), tuple(images), frozenset(plain))
