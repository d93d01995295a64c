"""Mirrors: where else an image may be, in the order to ask.

The rules are those of ImageDigestMirrorSet, its older form ImageContentSourcePolicy, and imageContentSources of a
HostedCluster: the longest matching source decides, its mirrors are asked in order, then the source itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hcp.errors import HcpError
from hcp.oci.reference import Reference


@dataclass(frozen=True, slots=True)
class Mirror:
    """Replacements for one source prefix."""

    source: str
    mirrors: tuple[str, ...]
    never_source: bool = False
    only: Literal["any", "digest", "tag"] = "any"


def matches(source: str, image: str) -> bool:
    """Whether `source` is a whole-part prefix of `image`.

    A colon ends a part only when the source has a path: `host` must not match `host:5000/…`.
    """
    if source.startswith("*."):
        host, slash, _ = image.partition("/")
        bare = host.rpartition(":")[0] or host
        return bool(slash) and (bare.endswith(source[1:]) or host.endswith(source[1:]))
    if not source or not image.startswith(source):
        return False
    following = image[len(source) :][:1]
    return following in ("", "/", "@") or (following == ":" and "/" in source)


def candidates(ref: Reference, mirrors: Iterable[Mirror]) -> list[Reference]:
    """Every place to ask for an image, in order."""
    image = str(ref)
    fitting = [m for m in mirrors if matches(m.source, image) and _applies(m, ref)]
    if not fitting:
        return [ref]
    longest = max(len(m.source) for m in fitting)
    chosen = [m for m in fitting if len(m.source) == longest]
    found: list[Reference] = []
    for entry in chosen:
        for mirror in entry.mirrors:
            moved = _move(image, entry.source, mirror)
            if moved is not None and moved not in found:
                found.append(moved)
    if not any(m.never_source for m in chosen) and ref not in found:
        found.append(ref)
    return found or [ref]


def override(image: str, overrides: Mapping[str, str]) -> str:
    """Rewrite an image by the longest matching source of a `source=mirror` table, whatever its form."""
    for source in sorted(overrides, key=len, reverse=True):
        if matches(source, image):
            return overrides[source] + image[len(source) :]
    return image


def from_objects(objects: Iterable[Mapping[str, Any]]) -> list[Mirror]:
    """Read ImageDigestMirrorSets, ImageTagMirrorSets and ImageContentSourcePolicies, ordered by name."""
    found: list[Mirror] = []
    for obj in sorted(objects, key=lambda o: str(o.get("metadata", {}).get("name"))):
        spec = obj.get("spec") or {}
        found += _entries(spec.get("imageDigestMirrors"), "any")
        found += _entries(spec.get("repositoryDigestMirrors"), "any")
        found += _entries(spec.get("imageTagMirrors"), "tag")
    return found


def from_image_content_sources(sources: Iterable[Mapping[str, Any]] | None) -> list[Mirror]:
    """Read `spec.imageContentSources` of a HostedCluster."""
    return _entries(sources, "any")


def _entries(entries: Iterable[Mapping[str, Any]] | None, only: Literal["any", "tag"]) -> list[Mirror]:
    return [
        Mirror(
            str(e["source"]),
            tuple(str(m) for m in e.get("mirrors") or ()),
            e.get("mirrorSourcePolicy") == "NeverContactSource",
            only,
        )
        for e in entries or ()
        if e.get("source")
    ]


def _applies(mirror: Mirror, ref: Reference) -> bool:
    if mirror.only == "any":
        return True
    return (ref.digest is not None) == (mirror.only == "digest")


def _move(image: str, source: str, mirror: str) -> Reference | None:
    rest = image.partition("/")[2] if source.startswith("*.") else image[len(source) :]
    glue = "/" if source.startswith("*.") else ""
    try:
        return Reference.parse(mirror.rstrip("/") + glue + rest)
    except HcpError:
        return None
