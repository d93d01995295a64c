"""One image on its way into a registry: its manifest, byte by byte, and where its blobs come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hcp.oci import errors, limits
from hcp.oci.reference import is_digest
from hcp.oci.upload import Blob, Content
from hcp.oci.writer_layout import DOCKER_INDEX_TYPE, INDEX_TYPE, MANIFEST_TYPE, read_layout

INDEX_TYPES = (INDEX_TYPE, DOCKER_INDEX_TYPE)


@dataclass(frozen=True)
class Image:
    """`children`: of a list for many platforms, the images it names."""

    digest: str
    raw: bytes
    media_type: str
    blobs: tuple[Blob, ...] = ()
    children: tuple[Image, ...] = ()

    @property
    def all_blobs(self) -> Iterator[Blob]:
        yield from self.blobs
        for child in self.children:
            yield from child.all_blobs

    @property
    def manifests(self) -> Iterator[Image]:
        """Children first."""
        for child in self.children:
            yield from child.manifests
        yield self

    @property
    def size(self) -> int:
        return sum(blob.size for blob in self.all_blobs)


def made_of(
    name: str, raw: bytes, content: Callable[[str, int], Path | bytes | Content], children: tuple[Image, ...] = ()
) -> Image:
    """The image that a manifest describes. `content` says where the blob with a digest and size comes from."""
    body = document(name, raw)
    return Image(
        f"sha256:{hashlib.sha256(raw).hexdigest()}",
        raw,
        kind_of(body),
        tuple(Blob(digest, size, content(digest, size)) for digest, size in blobs_of(name, body)),
        children,
    )


def document(name: str, raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise errors.broken(name, "its manifest is not JSON") from error
    if not isinstance(body, dict) or body.get("schemaVersion") != 2:
        raise errors.broken(name, "its manifest is not of schema 2")
    return body


def kind_of(body: Mapping[str, Any]) -> str:
    """What a manifest says of itself; official images may have Docker's older form, byte by byte."""
    return str(body.get("mediaType") or (INDEX_TYPE if "manifests" in body else MANIFEST_TYPE))


def children_of(name: str, body: Mapping[str, Any]) -> list[str]:
    """The digests a list for many platforms names."""
    entries = body.get("manifests") if kind_of(body) in INDEX_TYPES else []
    found = [str(one.get("digest")) for one in entries or () if isinstance(one, dict)]
    if len(found) > limits.MAX_LAYERS or not all(is_digest(one) for one in found):
        raise errors.broken(name, "its list names what is no image")
    return list(dict.fromkeys(found))


def blobs_of(name: str, body: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Digest and size of all that a manifest needs: config first, then the layers, each once."""
    if kind_of(body) in INDEX_TYPES:
        return []
    entries = [body.get("config"), *(body.get("layers") or ())]
    found: dict[str, int] = {}
    for one in entries:
        if not isinstance(one, dict) or not is_digest(str(one.get("digest"))) or not isinstance(one.get("size"), int):
            raise errors.broken(name, "its manifest names a layer without digest and size")
        if not one.get("urls"):  # layers that are only ever fetched from their publisher
            found[str(one["digest"])] = int(one["size"])
    if len(found) > limits.MAX_LAYERS + 1:
        raise errors.broken(name, f"it has {len(found)} layers, {limits.MAX_LAYERS} are permitted")
    return list(found.items())


def from_layout(path: Path) -> Image:
    """The one image of a layout on disk."""
    layout = read_layout(path)
    return made_of(str(path), layout.blob(layout.digest).read_bytes(), lambda digest, _: layout.blob(digest))
