"""Mirroring onto a disk: images into the store, then what is new out of it into archives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hcp.mirror import archive_writing, history
from hcp.mirror.built import artifact_of
from hcp.mirror.copy import Copied, Load
from hcp.mirror.plan import Item, Plan
from hcp.mirror.store import BlobStore
from hcp.mirror.workspace import Workspace
from hcp.oci.image import Image

GIB = 1 << 30


@dataclass
class StoreDestination:
    """Images on the way to an archive. All of them are opened: an archive has the manifests of each."""

    store: BlobStore
    load: Load
    images: dict[str, Image] = field(default_factory=dict)

    async def has(self, item: Item) -> bool:
        if artifact_of(item) is not None:  # built here: it goes into the archive as it is
            self.images[item.digest] = await self.load(item)
            return True
        raw = self.store.path(item.digest)
        if not raw.is_file():
            return False
        image = await self.load(item)
        self.images[item.digest] = image
        return self.store.has_image(image)

    async def put(self, item: Item) -> None:
        image = self.images.get(item.digest) or await self.load(item)
        self.images[item.digest] = image
        await self.store.take(image)


@dataclass(frozen=True)
class Written:
    archives: list[Path]
    # Digests that earlier archives have.
    before: int


def write_archives(
    workspace: Workspace,
    to: StoreDestination,
    plan: Plan,
    copied: Copied,
    config: Mapping[str, Any],
    *,
    most: int,
    strict: bool,
    since: str,
) -> Written:
    """Nothing is written when nothing is new."""
    done = [item for item in plan.items if item in copied.sent or item in copied.present]
    packed = Plan(done, plan.catalogs, [], plan.signatures)
    known = history.known(workspace, since)
    built = [item for item in done if artifact_of(item) is not None]
    manifests, blobs = archive_writing.new_members(
        (to.images[item.digest] for item in done if item not in built), to.store, known
    )
    marks = {member.name.removeprefix("blobs/").replace("/", ":") for member in (*manifests, *blobs)}
    for item in built:
        digests = {blob.digest for blob in to.images[item.digest].all_blobs} | {item.digest}
        artifact = artifact_of(item)
        if artifact is not None and digests - known - marks:
            blobs.append(archive_writing.folder_member(artifact))
        marks |= digests
    if not done or not marks - known:
        return Written([], len(known))
    shares = list(archive_writing.parts(manifests, blobs, most, strict=strict))
    written = archive_writing.write(workspace.root, packed, config, shares)
    history.remember(workspace, marks)
    return Written(written, len(known))
