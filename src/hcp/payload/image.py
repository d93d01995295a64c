"""An image described as data: binaries of components, small files, users, on a base or on nothing.

Everything that decides the content is in the description, so its hash is the component's key and an image is made
again exactly when something in it changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from hcp.api.names import BUILD_REGISTRY
from hcp.errors import HcpError
from hcp.oci.writer import ImageConfig, Layer, read_layout, write_image
from hcp.payload.component import Component
from hcp.payload.context import BuildContext
from hcp.payload.official import OfficialImage
from hcp.payload.versions import table

REGISTRY = BUILD_REGISTRY
NON_ROOT = "65532"
_NO_INPUTS = ("official", "unfit")
_PASSWD = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
_GROUP = "root:x:0:\nnonroot:x:65532:\n"


@dataclass(frozen=True)
class Take:
    """A file, or the files matching a pattern, of a component's artifact and where they go (a folder with `/`)."""

    component: str
    source: str
    path: str
    mode: int = 0o755
    capabilities: tuple[str, ...] = ()


def binaries(component: str, *names: str, folder: str = "/usr/local/bin/") -> tuple[Take, ...]:
    return tuple(Take(component, f"bin/{name}", folder + name) for name in names)


@dataclass(frozen=True)
class Image:
    """One image. `name` is its repository; `minor` sets apart two images of one repository."""

    name: str
    version: str
    take: tuple[Take, ...]
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    base: str | None = None
    user: str = NON_ROOT
    environment: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Path → (mode, owner)."""
    hide: tuple[str, ...] = ()
    minor: str = ""
    official: str = ""
    """The publisher's own image of the same thing, which stands in for ours when it can be pulled."""
    unfit: Callable[[], str] = str
    """Why the official image does not do on this machine; empty when it does."""
    summary: str = ""
    revision: int = 1

    @property
    def component(self) -> str:
        return f"image-{self.name}-{self.minor}" if self.minor else f"image-{self.name}"

    @property
    def repository(self) -> str:
        return f"hcp/{self.name}"

    @property
    def tag(self) -> str:
        return self.version


def version_of(component: str) -> str:
    """The pinned version of an upstream component; an image has the version of what is in it."""
    version: str = table()["component"].get(component, {}).get("version", "")
    return version


def image_component(image: Image) -> Component:
    deps = dict.fromkeys([*(take.component for take in image.take), *([image.base] if image.base else [])])
    return Component(
        name=image.component,
        version=image.version,
        build=partial(_build, image),
        deps=tuple(deps),
        inputs=partial(_inputs, image),
        outputs=("image/index.json",),
        downloads=(OfficialImage(image.official, name=_name(image)),) if image.official else (),
        unfit=image.unfit,
        summary=image.summary or f"image {image.repository}",
        how="written as an image",
    )


def image_digest(artifact: Path) -> str:
    """The digest of the image in an artifact directory."""
    return read_layout(artifact / "image").digest


def reference(repository: str, digest: str) -> str:
    """How pods name an image: by digest, in the registry every embedded cluster has under this name."""
    return f"{REGISTRY}/{repository}@{digest}"


def _inputs(image: Image) -> str:
    """Everything that decides what we build; not where somebody else's build is."""
    described = asdict(replace(image, unfit=str))
    return json.dumps({key: value for key, value in described.items() if key not in _NO_INPUTS}, sort_keys=True)


def _name(image: Image) -> str:
    return f"{REGISTRY}/{image.repository}:{image.tag}"


def _build(image: Image, ctx: BuildContext) -> None:
    base = read_layout(ctx.dep(image.base) / "image") if image.base else None
    config = ImageConfig(
        entrypoint=image.entrypoint,
        command=image.command,
        user=image.user,
        environment=image.environment,
        labels={"org.opencontainers.image.title": image.name, "org.opencontainers.image.version": image.version},
    )
    write_image(ctx.out / "image", _name(image), [layer_of(image, ctx)], config, base=base)


def layer_of(image: Image, ctx: BuildContext) -> Layer:
    layer = Layer(f"{image.name} {image.version}")
    if image.base is None:
        layer.directory("tmp", mode=0o1777)
        layer.file("etc/passwd", _PASSWD)
        layer.file("etc/group", _GROUP)
    for take in image.take:
        add_taken(layer, take, ctx)
    for path, text in image.texts.items():
        layer.file(path, text)
    for path, text in image.scripts.items():
        layer.file(path, text, mode=0o755)
    for path, target in image.links.items():
        layer.symlink(path, target)
    for path, (mode, owner) in image.folders.items():
        layer.directory(path, mode=mode, uid=owner, gid=owner)
    for path in image.hide:
        layer.whiteout(path)
    return layer


def add_taken(layer: Layer, take: Take, ctx: BuildContext) -> None:
    root = ctx.dep(take.component)
    found = sorted(path for path in root.glob(take.source) if path.is_file())
    if not found:
        raise HcpError(f"{ctx.component.name} needs {take.source} of the component {take.component}, which lacks it")
    for source in found:
        path = take.path + source.name if take.path.endswith("/") else take.path
        layer.file(path, source.resolve(), mode=take.mode, capabilities=take.capabilities)
