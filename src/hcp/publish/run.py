"""Publishing: parts first, then the images that name them, so that nothing ever names what is not there yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hcp.errors import HcpError
from hcp.oci.push import Pusher, together
from hcp.oci.reference import Reference
from hcp.oci.writer import read_layout
from hcp.payload.published import OPERATOR, is_image, tag
from hcp.publish import rewrite
from hcp.publish import target as where
from hcp.publish.target import Target
from hcp.release.layout import from_layout

_IMAGES_AT_ONCE = 4
# Called with the number of images that are in the registry, of how many, and the name of the last one.
Step = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Published:
    """Where things are now, by digest."""

    target: Target
    operator: str
    releases: dict[str, str] = field(default_factory=dict)

    @property
    def newest(self) -> str:
        return max(self.releases, key=lambda version: tuple(int(n) for n in version.split(".") if n.isdigit()))

    @property
    def minors(self) -> list[str]:
        ordered = sorted(self.releases, key=lambda v: tuple(int(n) for n in v.split(".") if n.isdigit()), reverse=True)
        return list(dict.fromkeys(".".join(version.split(".")[:2]) for version in ordered))


async def publish(
    target: Target, artifacts: Mapping[str, Path], pusher: Pusher, workspace: Path, step: Step
) -> Published:
    """`artifacts`: components `image-hcp` and `release-…`, and every image they name."""
    images = {read_layout(path / "image").digest: path for path in artifacts.values() if is_image(path)}
    releases = {name: read_layout(artifacts[name] / "image") for name in artifacts if name.startswith("release-")}
    operator = read_layout(artifacts[OPERATOR] / "image")
    named = dict.fromkeys(rewrite.named_by_operator(operator))
    for layout in releases.values():
        named.update(dict.fromkeys(rewrite.named_by_release(from_layout(layout))))
    moved = rewrite.moves(named, target)
    total, done = len(named) + len(releases) + 1, 0
    slots = asyncio.Semaphore(_IMAGES_AT_ONCE)

    def finished(name: str) -> None:
        nonlocal done
        done += 1
        step(done, total, name)

    async def part(reference: str) -> None:
        digest = str(Reference.parse(reference).digest)
        if digest not in images:
            raise HcpError(f"{reference} is named and was not built", hint="hcp payload build makes it")
        name, path = rewrite.name_of(reference), images[digest]
        async with slots:
            await pusher.push(path / "image", target.repository(name), tag=_kept(tag(path), digest))
        finished(name)

    await together(part(reference) for reference in named)
    found: dict[str, str] = {}
    for component, layout in releases.items():
        made = await asyncio.to_thread(rewrite.write_release, workspace / component, layout, target, moved)
        version = from_layout(made).version
        found[version] = await _named_image(pusher, made.path, where.RELEASE, version, target)
        finished(f"{where.RELEASE}:{version}")
    made = await asyncio.to_thread(rewrite.write_operator, workspace / OPERATOR, operator, target, moved)
    version = tag(artifacts[OPERATOR])
    image = await _named_image(pusher, made.path, where.OPERATOR, version, target)
    finished(f"{where.OPERATOR}:{version}")
    return Published(target, image, found)


async def _named_image(pusher: Pusher, layout: Path, name: str, version: str, target: Target) -> str:
    digest = read_layout(layout).digest
    await pusher.push(layout, target.repository(name), tag=_valid(version), more_tags=[_kept(version, digest)])
    return target.reference(name, digest)


def _kept(version: str, digest: str) -> str:
    """A tag that never moves: many registries remove images that no tag names any more."""
    return f"{_valid(version)}-{digest.removeprefix('sha256:')[:12]}"


def _valid(version: str) -> str:
    return version.replace("+", "_")
