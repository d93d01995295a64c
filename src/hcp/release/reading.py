"""A release: one image that names every component image of a version, and the disk its nodes boot from.

Read once per digest: a digest never means something else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from hcp.oci.cache import LruCache
from hcp.oci.client import RegistryClient
from hcp.oci.reference import Reference
from hcp.release.errors import MissingComponent, NotARelease

IMAGE_REFERENCES = "release-manifests/image-references"
BOOT_IMAGES = "release-manifests/0000_50_installer_coreos-bootimages.yaml"
# Definitions of snapshots of volumes, in a release that can do volumes.
SNAPSHOT_DEFINITIONS = "release-manifests/0000_50_cluster-csi-snapshot-controller_crds.json"
# Definitions of the kinds of config.openshift.io.
CONFIG_DEFINITIONS = "release-manifests/0000_10_config-operator_crds.json"
# Definitions of catalogs and what comes out of them, in a release that can do operators.
OLM_DEFINITIONS = "release-manifests/0000_50_olm_00-crds.json"
FILES = (IMAGE_REFERENCES, BOOT_IMAGES, SNAPSHOT_DEFINITIONS, CONFIG_DEFINITIONS, OLM_DEFINITIONS)
# How the stream metadata calls an architecture that images call otherwise.
STREAM_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
KEPT = 64
# What reading a document can raise that is not what it should be.
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)

_read: WeakKeyDictionary[RegistryClient, LruCache[Release]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Release:
    """What a release image says."""

    version: str
    components: dict[str, str]
    boot_disk: str | None
    arch: str
    image: str = ""
    digest: str = ""
    component_versions: dict[str, str] = field(default_factory=dict)
    snapshot_definitions: tuple[dict[str, Any], ...] = ()
    """Custom resource definitions of snapshots; empty in a release without storage."""
    config_definitions: bytes = field(default=b"", repr=False)
    """A JSON list of those of config.openshift.io, read by `definitions` when they are needed: they are large."""
    olm_definitions: tuple[dict[str, Any], ...] = ()
    """Custom resource definitions of catalogs; empty in a release without operators."""

    def component(self, name: str) -> str:
        """The image of a component, by digest; MissingComponent if the release has none."""
        try:
            return self.components[name]
        except KeyError:
            raise MissingComponent(self.image, self.version, name) from None

    def has(self, *names: str) -> bool:
        return all(name in self.components for name in names)


async def read(client: RegistryClient, image: str) -> Release:
    """Read a release image; from memory when this client read the same digest before."""
    ref = Reference.parse(image)
    digest = await client.digest(ref)
    known = _read.setdefault(client, LruCache(KEPT, lambda _: 1))
    release = known.get((ref.name, digest))
    if release is None:
        pinned = ref.with_digest(digest)
        files = await client.read_files(pinned, FILES, enough=(IMAGE_REFERENCES,))
        arch = str((await client.config(pinned)).get("architecture") or "amd64")
        release = parse(image, digest, files, arch)
        known.put((ref.name, digest), release)
    return release


def parse(image: str, digest: str, files: Mapping[str, bytes], arch: str = "amd64") -> Release:
    """Turn the files of a release image into a Release."""
    if IMAGE_REFERENCES not in files:
        raise NotARelease(image, f"it has no file {IMAGE_REFERENCES}")
    try:
        stream = json.loads(files[IMAGE_REFERENCES])
        version = str(stream["metadata"]["name"])
        tags = stream["spec"]["tags"]
        components = {str(tag["name"]): str(tag["from"]["name"]) for tag in tags if (tag.get("from") or {}).get("name")}
        versions = _component_versions(stream)
    except _UNREADABLE as exc:
        raise NotARelease(image, f"its file {IMAGE_REFERENCES} is no ImageStream: {exc!r}") from exc
    boot_disk = _boot_disk(image, files.get(BOOT_IMAGES), arch)
    snapshots = definitions(image, SNAPSHOT_DEFINITIONS, files.get(SNAPSHOT_DEFINITIONS, b""))
    config = files.get(CONFIG_DEFINITIONS, b"")
    definitions(image, CONFIG_DEFINITIONS, config)
    olm = definitions(image, OLM_DEFINITIONS, files.get(OLM_DEFINITIONS, b""))
    return Release(version, components, boot_disk, arch, image, digest, versions, snapshots, config, olm)


def definitions(image: str, name: str, manifest: bytes) -> tuple[dict[str, Any], ...]:
    """The custom resource definitions in a file of a release; NotARelease if it holds anything else."""
    if not manifest:
        return ()
    try:
        found = tuple(dict(item) for item in json.loads(manifest)["items"])
        kinds = {item["kind"] for item in found}
    except _UNREADABLE as exc:
        raise NotARelease(image, f"its file {name} is no list: {exc!r}") from exc
    if kinds - {"CustomResourceDefinition"}:
        raise NotARelease(image, f"its file {name} holds more than definitions")
    return found


def _boot_disk(image: str, manifest: bytes | None, arch: str) -> str | None:
    """The container disk for KubeVirt from the stream metadata, which lies as JSON text in a ConfigMap."""
    if manifest is None:
        return None
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data = yaml.load(manifest, Loader=loader)["data"]  # noqa: S506 - a safe loader either way
        streams = [json.loads(data["stream"])] if "stream" in data else list(json.loads(data["streams"]).values())
        offered = [(s.get("architectures") or {}).get(STREAM_ARCHITECTURES.get(arch, arch)) or {} for s in streams]
    except (yaml.YAMLError, *_UNREADABLE) as exc:
        raise NotARelease(image, f"its file {BOOT_IMAGES} holds no stream metadata: {exc!r}") from exc
    for images in offered:
        found = ((images.get("images") or {}).get("kubevirt") or {}).get("digest-ref")
        if found:
            return str(found)
    return None


def _component_versions(stream: Mapping[str, Any]) -> dict[str, str]:
    """Versions that tags announce in `io.openshift.build.versions`, such as kubernetes=1.36.3."""
    versions: dict[str, str] = {}
    for tag in stream["spec"]["tags"]:
        text = (tag.get("annotations") or {}).get("io.openshift.build.versions") or ""
        for pair in text.split(","):
            name, equals, version = pair.strip().partition("=")
            if equals and name:
                versions.setdefault(name, version)
    return versions
