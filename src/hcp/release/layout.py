"""Releases that lie in an OCI layout on disk instead of in a registry."""

from __future__ import annotations

from collections.abc import Iterable

from hcp.oci import layers
from hcp.oci.errors import broken
from hcp.oci.writer_layout import Layout
from hcp.release.reading import FILES, Release, parse


def from_layout(layout: Layout, name: str = "") -> Release:
    """What a release in a layout says; `name` is how messages call it."""
    image = name or str(layout.path)
    files = find_files(layout, FILES)
    return parse(image, layout.digest, files, str(layout.config.get("architecture") or "amd64"))


def find_files(layout: Layout, paths: Iterable[str]) -> dict[str, bytes]:
    """The named files as the image in a layout has them; missing ones are missing in the answer."""
    wanted = layers.Search(paths)
    for item in reversed(layout.manifest["layers"]):
        if wanted.complete:
            break
        with layout.blob(item["digest"]).open("rb") as file:
            try:
                wanted.read_layer(file)
            except layers.Unreadable as exc:
                raise broken(str(layout.path), f"layer {item['digest']}: {exc}") from exc
    return wanted.found
