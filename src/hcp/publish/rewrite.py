"""Writing releases and the operator's image anew, so that every image they name is where it was published."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from hcp.errors import HcpError
from hcp.oci import layers
from hcp.oci.reference import Reference
from hcp.oci.writer import ImageConfig, Layer, Layout, write_image
from hcp.publish.target import OPERATOR, RELEASE, Target
from hcp.release.layout import find_files
from hcp.release.reading import BOOT_IMAGES, IMAGE_REFERENCES, Release, parse

MANIFESTS = "release-manifests"
IMAGES = "opt/hcp/images.json"
# The same list as a label, so that whoever copies the operator's image elsewhere learns of the others cheaply.
NAMED_LABEL = "hcp.images"


def named_by_release(release: Release) -> list[str]:
    """Every image a release names, the disk of its nodes too."""
    return [*release.components.values(), *([release.boot_disk] if release.boot_disk else [])]


def named_by_operator(layout: Layout) -> list[str]:
    """The images that the operator's image brings into a cluster."""
    found = find_files(layout, (IMAGES,))
    if IMAGES not in found:
        raise HcpError(f"the image in {layout.path} is not the operator's", cause=f"it has no file {IMAGES}")
    return [str(image) for image in json.loads(found[IMAGES]).values()]


def name_of(reference: str) -> str:
    """What an image is called below the place it is published at: `…/hcp/etcd@…` → `etcd`."""
    return Reference.parse(reference).repository.removeprefix("hcp/").replace("/", "-")


def moves(references: Iterable[str], target: Target) -> dict[str, str]:
    """Each reference by digest → the reference of the same image in the target."""
    found = {}
    for text in references:
        digest = Reference.parse(text).digest
        if digest is None:
            raise HcpError(f"{text} is not named by digest", hint="only images by digest can be published")
        found[text] = target.reference(name_of(text), digest)
    return found


def moved_files(files: Mapping[str, bytes], moved: Mapping[str, str]) -> dict[str, bytes]:
    """The files with every reference replaced; a reference holds a digest, so nothing else can look like one."""
    found = dict(files)
    for path, data in found.items():
        for old, new in moved.items():
            data = data.replace(old.encode(), new.encode())  # noqa: PLW2901 - one after the other
        found[path] = data
    return found


def write_release(folder: Path, layout: Layout, target: Target, moved: Mapping[str, str]) -> Layout:
    """The release of a layout with its references in the target: the same input gives the same digest."""
    files: dict[str, bytes] = {}
    for item in layout.manifest["layers"]:
        with layout.blob(item["digest"]).open("rb") as file:
            files |= layers.read_below(file, MANIFESTS)
    files = moved_files(files, moved)
    wanted = {name: files[name] for name in (IMAGE_REFERENCES, BOOT_IMAGES) if name in files}
    release = parse(str(layout.path), layout.digest, wanted)
    left = [image for image in named_by_release(release) if image not in moved.values()]
    if left:
        raise HcpError(f"the release {release.version} still names images elsewhere", cause=", ".join(left))
    layer = Layer(f"release {release.version}")
    for path, data in files.items():
        layer.file(path, data)
    name = f"{target.registry}/{target.repository(RELEASE)}:{release.version}"
    return write_image(folder, name, [layer], config_of(layout))


def write_operator(folder: Path, layout: Layout, target: Target, moved: Mapping[str, str]) -> Layout:
    """The operator's image with a list of images that are in the target, on top of what it was."""
    files = moved_files(find_files(layout, (IMAGES,)), moved)
    layer = Layer("the list of images")
    layer.file(IMAGES, files[IMAGES])
    name = f"{target.registry}/{target.repository(OPERATOR)}"
    config = config_of(layout)
    label = {NAMED_LABEL: " ".join(sorted(json.loads(files[IMAGES]).values()))}
    return write_image(folder, name, [layer], replace(config, labels={**config.labels, **label}), base=layout)


def config_of(layout: Layout) -> ImageConfig:
    """What a container of an image runs, to be said again of an image made from it."""
    known = layout.config.get("config") or {}
    environment = dict(one.partition("=")[::2] for one in known.get("Env") or ())
    return ImageConfig(
        entrypoint=tuple(known.get("Entrypoint") or ()),
        command=tuple(known.get("Cmd") or ()),
        environment=environment,
        user=str(known.get("User") or ""),
        working_directory=str(known.get("WorkingDir") or "/"),
        labels=known.get("Labels") or {},
    )
