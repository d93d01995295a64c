"""Kubernetes releases in OpenShift's release format: one small image that names every other one by digest.

`release-<minor>` depends on exactly the images it names, so whoever publishes a release finds them as its dependencies.
`release-<minor>-storage` is the same with what volumes in hosted clusters need, `-olm` with what catalogs of operators
need, `-ingress` has the router of hosted clusters, `-autoscaling` the autoscaler of node pools, `-login` the OAuth
server of hosted clusters, `-metrics` metrics-server, `-monitoring` Prometheus too. `-platform` has all that a person
meets who works in a cluster: router, logins, metrics and monitoring; `-full` has everything. These are made on request:
compiling their parts takes long, and a cluster without volumes, catalogs or logins does not want them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hcp import __version__
from hcp.oci.writer import CREATED, ImageConfig, Layer, write_image
from hcp.payload import disk
from hcp.payload.component import Component
from hcp.payload.context import BuildContext
from hcp.payload.image import REGISTRY, image_digest, reference, version_of
from hcp.payload.images import autoscaling, login, monitoring, olm, storage
from hcp.release.reading import CONFIG_DEFINITIONS, OLM_DEFINITIONS, SNAPSHOT_DEFINITIONS

REPOSITORY = "hcp/release"
_MANIFESTS = "release-manifests"
_REVISION = 2
# Kinds that tell a hosted cluster's version, parts and settings.
_CONFIG = "openshift-definitions"
# Tag in the release → does each minor have its own image, and the upstream component whose version it announces.
_TAGS: Mapping[str, tuple[bool, str]] = {
    "etcd": (False, "etcd"),
    "kube-apiserver": (True, "kubernetes"),
    "kube-controller-manager": (True, "kubernetes"),
    "kube-scheduler": (True, "kubernetes"),
    "kube-proxy": (True, "kubernetes"),
    "konnectivity-server": (False, "konnectivity"),
    "konnectivity-agent": (False, "konnectivity"),
    "coredns": (False, "coredns"),
    "flannel": (False, "flannel"),
    "kube-router": (False, "kube-router"),
    "haproxy": (False, ""),
    "pause": (False, ""),
}


@dataclass(frozen=True)
class Extra:
    """What a release may have besides: images by their name in it with their versions, and definitions."""

    versions: Mapping[str, str]
    # The component with the definitions, if there are any, and the file they are in a release.
    definitions: str = ""
    file: str = ""


_STORAGE = Extra(
    {name: version for name, (_, version) in storage.PROGRAMS.items()}, storage.DEFINITIONS, SNAPSHOT_DEFINITIONS
)
_OLM = Extra(olm.versions(), olm.DEFINITIONS, OLM_DEFINITIONS)
_INGRESS = Extra({"router": __version__})
_LOGIN = Extra(login.versions())
_METRICS = Extra(monitoring.metrics_versions())
_MONITORING = Extra(monitoring.versions())
_AUTOSCALING = Extra(autoscaling.versions())
_VARIANTS: Mapping[str, tuple[str, tuple[Extra, ...]]] = {
    "storage": ("storage", (_STORAGE,)),
    "olm": ("catalogs of operators", (_OLM,)),
    "ingress": ("the default ingress", (_INGRESS,)),
    "login": ("logging in by a password", (_LOGIN,)),
    "metrics": ("metrics of pods and nodes", (_METRICS,)),
    "monitoring": ("metrics and monitoring", (_METRICS, _MONITORING)),
    "platform": ("the default ingress, logging in and monitoring", (_INGRESS, _LOGIN, _METRICS, _MONITORING)),
    "autoscaling": ("node pools that follow the load", (_AUTOSCALING,)),
    # Only here is what storage serves measured too.
    "full": (
        "storage, catalogs of operators, the default ingress, logging in, monitoring and autoscaling",
        (_STORAGE, _OLM, _INGRESS, _LOGIN, _METRICS, _MONITORING, _AUTOSCALING),
    ),
}


@dataclass(frozen=True)
class Tag:
    """One line of a release: a component's name, its image and the version it announces."""

    name: str
    image: str
    announces: str = ""


def with_storage(minor: str) -> str:
    """The component of the release of a minor that can do volumes."""
    return f"release-{minor}-storage"


def components(minors: tuple[str, ...]) -> Iterator[Component]:
    for minor in minors:
        version = version_of(f"kubernetes-{minor}")
        for variant, (summary, extras) in _VARIANTS.items():
            yield Component(
                name=f"release-{minor}-{variant}",
                version=f"{version}-{variant}",
                build=partial(_build, minor, extras=extras),
                deps=(*_deps(minor, extras), *(one.definitions for one in extras if one.definitions)),
                inputs=partial(_inputs, extras),
                outputs=("image/index.json",),
                summary=f"release image of Kubernetes {minor} with {summary}",
                how="written as an image",
                on_request=True,
            )
        yield Component(
            name=f"release-{minor}",
            version=version,
            build=partial(_build, minor),
            deps=_deps(minor),
            inputs=_inputs,
            outputs=("image/index.json",),
            summary=f"release image of Kubernetes {minor}",
            how="written as an image",
        )


def _deps(minor: str, extras: tuple[Extra, ...] = ()) -> tuple[str, ...]:
    return (*_images(minor, extras).values(), f"node-disk-{minor}", _CONFIG)


def _inputs(extras: tuple[Extra, ...] = ()) -> str:
    return " ".join(map(str, (_TAGS, *extras, _REVISION)))


def _component(tag: str, minor: str) -> str:
    per_minor, _ = _TAGS[tag]
    return f"image-{tag}-{minor}" if per_minor else f"image-{tag}"


def _images(minor: str, extras: tuple[Extra, ...] = ()) -> dict[str, str]:
    """Name in the release → component with its image."""
    more = {name: f"image-{name}" for one in extras for name in one.versions}
    return {**{name: _component(name, minor) for name in _TAGS}, **more}


def _build(minor: str, ctx: BuildContext, *, extras: tuple[Extra, ...] = ()) -> None:
    version = version_of(f"kubernetes-{minor}")
    more = {name: f"{name}={version}" for one in extras for name, version in one.versions.items()}
    tags = [
        Tag(name, reference(f"hcp/{name}", image_digest(ctx.dep(component))), more.get(name) or _announced(name, minor))
        for name, component in _images(minor, extras).items()
    ]
    boot_disk = reference(disk.REPOSITORY, image_digest(ctx.dep(f"node-disk-{minor}")))
    layer = Layer(f"release {version}")
    for name, content in release_files(version, tags, boot_disk).items():
        layer.file(f"{_MANIFESTS}/{name}", content)
    layer.file(CONFIG_DEFINITIONS, definitions(ctx.dep(_CONFIG) / "manifests" / "crds"))
    for one in (one for one in extras if one.definitions):
        layer.file(one.file, definitions(ctx.dep(one.definitions) / "manifests" / "crds"))
    config = ImageConfig(labels={"io.openshift.release": version})
    write_image(ctx.out / "image", f"{REGISTRY}/{REPOSITORY}:{ctx.component.version}", [layer], config)


def definitions(folder: Path) -> str:
    """Definitions of upstream as one document, in JSON like the other manifests."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = [yaml.load(path.read_text(), Loader=loader) for path in sorted(folder.glob("*.yaml"))]  # noqa: S506 - a safe loader either way
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": found}, separators=(",", ":")) + "\n"


def _announced(tag: str, minor: str) -> str:
    _, component = _TAGS[tag]
    if not component:
        return ""
    version = version_of(f"kubernetes-{minor}" if component == "kubernetes" else component)
    return f"{component}={version}"


def release_files(version: str, tags: list[Tag], boot_disk: str) -> dict[str, str]:
    """The files of a release image. YAML's subset JSON is enough for the manifest, so nothing has to be imported."""
    return {
        "image-references": json.dumps(image_stream(version, tags), indent=1) + "\n",
        "release-metadata": json.dumps({"kind": "cincinnati-metadata-v0", "version": version, "previous": []}) + "\n",
        "0000_50_installer_coreos-bootimages.yaml": json.dumps(boot_images(version, boot_disk), indent=1) + "\n",
    }


def image_stream(version: str, tags: list[Tag]) -> dict[str, Any]:
    return {
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "metadata": {"name": version, "creationTimestamp": CREATED},
        "spec": {"lookupPolicy": {"local": False}, "tags": [_stream_tag(tag) for tag in tags]},
        "status": {"dockerImageRepository": ""},
    }


def _stream_tag(tag: Tag) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": tag.name,
        "from": {"kind": "DockerImage", "name": tag.image},
        "generation": None,
        "importPolicy": {},
        "referencePolicy": {"type": ""},
    }
    if tag.announces:
        entry["annotations"] = {"io.openshift.build.versions": tag.announces}
    return entry


def boot_images(version: str, boot_disk: str) -> dict[str, Any]:
    kubevirt = {"release": version, "image": boot_disk, "digest-ref": boot_disk}
    stream = {
        "stream": f"kubernetes-{version}",
        "metadata": {"last-modified": CREATED},
        "architectures": {"x86_64": {"artifacts": {}, "images": {"kubevirt": kubevirt}}},
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "coreos-bootimages", "namespace": "openshift-machine-config-operator"},
        "data": {"releaseVersion": version, "stream": json.dumps(stream, indent=1)},
    }
