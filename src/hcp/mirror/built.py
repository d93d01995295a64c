"""Releases that were built on this machine, or on the one where `payload export` packed them."""

from __future__ import annotations

import json
from pathlib import Path

from hcp.errors import HcpError
from hcp.mirror.archive_reading import Archives
from hcp.mirror.plan import BOOT_DISK, COMPONENTS, RELEASES, Item, Plan, Problem, release_tag
from hcp.oci import layers
from hcp.oci.image import document
from hcp.oci.reference import Reference
from hcp.release.layout import from_layout
from hcp.release.reading import BOOT_IMAGES, IMAGE_REFERENCES, Release, parse

# `release: payload:1.36` names a release out of the cache of built components.
BUILT = "payload:"
_NAME = "org.opencontainers.image.ref.name"


def artifact_of(item: Item) -> Path | None:
    """The folder of a built component, if that is where an item comes from."""
    layout = Path(item.made)
    return layout.parent if item.made and layout.is_absolute() else None


def plan_built(plan: Plan, minor: str, boot_disk: bool) -> Release:
    from hcp import payload
    from hcp.oci.writer import read_layout
    from hcp.payload.published import with_parts
    from hcp.payload.registry import default_registry

    name = f"release-{minor}"
    if name not in default_registry().names():
        known = [one.removeprefix("release-") for one in default_registry().names() if one.startswith("release-")]
        raise HcpError(f"there is no release {BUILT}{minor}", hint=f"it is one of {', '.join(known)}")
    layouts = {}
    for component in with_parts([name]):
        found = payload.find(component)
        if found is None:
            raise HcpError(f"{component} of release {minor} is not built yet", hint=f"run: hcp payload build {name}")
        layouts[component] = read_layout(found / "image")
    release = from_layout(layouts[name], f"{BUILT}{minor}")
    made = {layout.digest: str(layout.path) for layout in layouts.values()}
    _add(plan, release, _named(layouts[name].path), made, boot_disk)
    return release


def plan_exported(found: Archives) -> Plan:
    """What a file of `payload export` holds: releases with their parts, and the other images under their names."""
    if not found.layouts:
        raise HcpError("the archive holds no images", hint="name what mirroring to disk or payload export wrote")
    plan = Plan()
    images = {}
    for component, index in found.layouts.items():
        (entry,) = index["manifests"]
        images[component] = (str(entry["digest"]), str(entry["annotations"][_NAME]))
    made = dict.fromkeys((digest for digest, _ in images.values()), "")
    for component, (digest, name) in images.items():
        if component.startswith("release-"):
            _add(plan, parse(name, digest, _files(found, digest)), name, made, boot_disk=True)
    known = {item.digest for item in plan.items}
    for digest, name in images.values():
        if digest not in known:
            ref = Reference.parse(name)
            source = str(ref.with_digest(digest))
            plan.add(Item("additional", source, digest, ref.repository, ref.tag or "latest"))
    return plan


def _add(plan: Plan, release: Release, name: str, made: dict[str, str], boot_disk: bool) -> None:
    group = f"release {release.version} {release.arch}"
    named = sorted(release.components.items())
    if boot_disk and release.boot_disk:
        named.append((BOOT_DISK, release.boot_disk))
    for component, image in named:
        digest = str(Reference.parse(image).digest)
        if digest not in made:
            what = f"{component} of release {release.version}"
            plan.problems.append(Problem("release", what, f"{image} is not there", "export or build the whole release"))
            continue
        tag = release_tag(release.version, release.arch, component)
        plan.add(Item("release", image, digest, COMPONENTS, tag, made=made[digest], group=group))
    source = str(Reference.parse(name).with_digest(release.digest))
    tag = release_tag(release.version, release.arch)
    plan.add(Item("release", source, release.digest, RELEASES, tag, made=made[release.digest], group=group, last=True))


def _files(found: Archives, digest: str) -> dict[str, bytes]:
    wanted = layers.Search((IMAGE_REFERENCES, BOOT_IMAGES))
    for layer in reversed(document(digest, found.read(digest))["layers"]):
        if not wanted.complete:
            wanted.read_layer(found.open(str(layer["digest"])))
    return wanted.found


def _named(layout: Path) -> str:
    (entry,) = json.loads((layout / "index.json").read_bytes())["manifests"]
    return str(entry["annotations"][_NAME])
