"""Images that lie in a folder here: made out of others, whose parts stay in the source's registry, or built here."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hcp.mirror.plan import Item
from hcp.mirror.sources import Remote, Sources
from hcp.oci import image
from hcp.oci.image import Image
from hcp.oci.reference import Reference
from hcp.oci.upload import Content


async def read(folder: Path, item: Item, sources: Sources) -> Image:
    place = None
    if item.source and not Path(item.made).is_absolute():
        ref = Reference.parse(item.source)
        place, _ = await sources.patiently(lambda: sources.client(ref).exact(ref))
    return await asyncio.to_thread(_open, folder, item.digest, sources, place)


def _open(folder: Path, digest: str, sources: Sources, place: Reference | None) -> Image:
    def blob(wanted: str) -> Path:
        return folder / "blobs" / "sha256" / wanted.removeprefix("sha256:")

    def content(wanted: str, size: int) -> Path | Content:
        if place is None or blob(wanted).is_file():
            return blob(wanted)
        return Remote(sources, place, wanted, size)

    raw = blob(digest).read_bytes()
    children = image.children_of(str(folder), image.document(str(folder), raw))
    return image.made_of(str(folder), raw, content, tuple(_open(folder, child, sources, place) for child in children))
