"""Everything an image set can name, made small and put into a real registry."""

from __future__ import annotations

import json
import os
import random
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.support.cli_runner import BIN, Result
from tests.support.published_images import artifacts
from tests.support.registry import Registry

from hcp.oci import Auths, RegistryClient
from hcp.oci.image import Image, from_layout, made_of
from hcp.oci.push import Pusher
from hcp.oci.writer import ImageConfig, Layer, read_layout, write_image
from hcp.oci.writer_layout import INDEX_TYPE, canonical_json
from hcp.payload.release import Tag, release_files
from hcp.publish.run import publish
from hcp.publish.target import Target

CHANNELS = "io.openshift.upgrades.graph.release.channels"
API = {"apiVersion": "mirror.openshift.io/v2alpha1", "kind": "ImageSetConfiguration"}


def pusher(registry: Registry) -> Pusher:
    return Pusher(f"https://{registry.host}", ca_pem=registry.ca_pem, auths=Auths(registry.auths))


def image(folder: Path, name: str, size: int = 1000, **files: bytes) -> Path:
    layer = Layer(name)
    layer.file(f"data/{name}", random.Random(name).randbytes(size))
    for path, data in files.items():
        layer.file(path, data)
    write_image(folder, name, [layer], ImageConfig(entrypoint=(name,)))
    return folder


def for_many_platforms(folder: Path, name: str) -> Image:
    """A list of two images, as multi-platform images are."""
    children = [from_layout(image(folder / arch, f"{name}-{arch}")) for arch in ("amd64", "arm64")]
    listed = [
        {
            "mediaType": child.media_type,
            "digest": child.digest,
            "size": len(child.raw),
            "platform": {"os": "linux", "architecture": arch},
        }
        for child, arch in zip(children, ("amd64", "arm64"), strict=True)
    ]
    raw = canonical_json({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": listed})
    return made_of(name, raw, lambda digest, _: folder / digest, tuple(children))


@dataclass
class Published:
    """What the source registry has."""

    registry: Registry
    # The folder where the registry keeps it.
    data: Path
    releases: dict[str, str] = field(default_factory=dict)
    # Images that a catalog names.
    named: dict[str, str] = field(default_factory=dict)

    def name(self, path: str) -> str:
        return f"{self.registry.host}/{path}"

    def graph(self) -> dict[str, Any]:
        """1.36.1 → 1.36.2 → 1.36.3, and 1.36.1 → 1.36.3 at once."""
        versions = sorted(self.releases)
        nodes = [
            {"version": v, "payload": self.releases[v], "metadata": {CHANNELS: "stable-1.36,candidate-1.36"}}
            for v in versions
        ]
        return {"nodes": nodes, "edges": [[0, 1], [1, 2], [0, 2]][: 3 if len(versions) > 2 else 1]}


async def publish_releases(
    registry: Registry, data: Path, folder: Path, versions: tuple[str, ...], big: int
) -> Published:
    found = Published(registry, data)
    async with pusher(registry) as to:
        for version in versions:
            made = artifacts(folder / version, version, big=big)
            (folder / f"work-{version}").mkdir(parents=True)
            target = Target(registry.host, "team/hcp")
            done = await publish(target, made, to, folder / f"work-{version}", lambda *_: None)
            found.releases.update(done.releases)
    return found


async def publish_broken_release(registry: Registry, folder: Path) -> str:
    """A release that names an image nobody has."""
    gone = f"{registry.host}/team/hcp/etcd@sha256:{'0' * 64}"
    layer = Layer("release")
    for name, text in release_files("1.36.7", [Tag("etcd", gone, "etcd=3.6.5")], gone).items():
        layer.file(f"release-manifests/{name}", text)
    write_image(folder, "release", [layer], ImageConfig())
    async with pusher(registry) as to:
        digest = await to.push(folder, "team/broken/release", tag="1.36.7")
    return f"{registry.host}/team/broken/release@{digest}"


def _bundle(registry: Registry, package: str, version: str, image: str, related: list[str]) -> dict[str, Any]:
    return {
        "schema": "olm.bundle",
        "name": f"{package}.v{version}",
        "package": package,
        "image": image,
        "properties": [{"type": "olm.package", "value": {"packageName": package, "version": version}}],
        "relatedImages": [{"name": "", "image": one} for one in (image, *related)],
    }


async def publish_catalog(registry: Registry, folder: Path) -> dict[str, str]:
    """A catalog with two packages, as opm makes them: a base with the program, documents on top, a cache of them.

    Returns the images that its documents name, by a short name.
    """
    named: dict[str, str] = {}
    async with pusher(registry) as to:
        for name in ("metallb-bundle-1", "metallb-bundle-2", "metallb-1", "metallb-2", "lvms-bundle-1", "lvms-1"):
            digest = await to.push(image(folder / name, name), f"operators/{name.rpartition('-')[0]}")
            named[name] = f"{registry.host}/operators/{name.rpartition('-')[0]}@{digest}"
        documents: dict[str, list[dict[str, Any]]] = {"metallb": [], "lvms": []}
        for package, versions in (("metallb", ("1.0.0", "2.0.0")), ("lvms", ("1.0.0",))):
            entries: list[dict[str, Any]] = []
            for number, version in enumerate(versions, 1):
                before = {"replaces": entries[-1]["name"]} if entries else {}
                entries.append({"name": f"{package}.v{version}", **before})
                bundle, operand = named[f"{package}-bundle-{number}"], named[f"{package}-{number}"]
                documents[package].append(_bundle(registry, package, version, bundle, [operand]))
            documents[package] += [
                {"schema": "olm.package", "name": package, "defaultChannel": "stable"},
                {"schema": "olm.channel", "name": "stable", "package": package, "entries": entries},
            ]
        base = read_layout(image(folder / "opm", "opm", 1 << 20))
        layer = Layer("catalog")
        for package, found in documents.items():
            layer.file(f"configs/{package}/catalog.json", "\n".join(json.dumps(one) for one in found))
        layer.file("tmp/cache/digest", b"of the documents above")
        config = ImageConfig(
            entrypoint=("/bin/opm",),
            command=("serve", "/configs", "--cache-dir=/tmp/cache", "--cache-enforce-integrity"),
            labels={"operators.operatorframework.io.index.configs.v1": "/configs"},
        )
        write_image(folder / "catalog", "catalog", [layer], config, base=base)
        await to.push(folder / "catalog", "operators/example-operator-index", tag="v1.36")
        labels = {"operators.operatorframework.io.index.database.v1": "/database/index.db"}
        write_image(folder / "old", "old", [Layer("database")], ImageConfig(labels=labels))
        await to.push(folder / "old", "operators/old-index", tag="v1")
    return named


class Site:
    """A person with the configuration, a login and an empty home."""

    def __init__(self, folder: Path, *registries: Registry) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        auths: dict[str, Any] = {}
        for registry in registries:
            auths.update(registry.auths["auths"])  # type: ignore[call-overload]
        (folder / "auth.json").write_text(json.dumps({"auths": auths}))
        (folder / "ca.pem").write_bytes(b"".join(registry.ca_pem for registry in registries))
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "HCP_TRACEBACK": "1"}

    def configure(self, mirror: dict[str, Any], **more: Any) -> None:
        (self.folder / "isc.yaml").write_text(yaml.safe_dump({**API, "mirror": mirror, **more}))

    def words(self, *words: str) -> list[str]:
        how = ["--v2", "--authfile", "auth.json", "--ca", "ca.pem", "--retry-delay", "10ms"]
        return [str(BIN / "oc-mirror"), *words, *how]

    def start(self, *words: str, **how: Any) -> subprocess.Popen[str]:
        out = subprocess.PIPE
        return subprocess.Popen(
            self.words(*words), cwd=self.folder, env=self.env, stdout=out, stderr=out, text=True, **how
        )

    def run(self, *words: str) -> Result:
        process = self.start(*words)
        out, err = process.communicate(timeout=600)
        assert "Traceback" not in err, err
        return Result(process.returncode, out, err)

    def ok(self, *words: str) -> Result:
        done = self.run(*words)
        assert done.code == 0, done.err
        return done

    def documents(self, path: str) -> list[dict[str, Any]]:
        return [one for one in yaml.safe_load_all((self.folder / path).read_text()) if one]


async def content(registry: Registry, repositories: list[str]) -> dict[str, str]:
    """Every tag and its digest."""
    found = {}
    async with RegistryClient(registry.auths, registry.ca_pem) as client:
        for repository in repositories:
            for tag in await client.tags(f"{registry.host}/{repository}"):
                found[f"{repository}:{tag}"] = await client.digest(f"{registry.host}/{repository}:{tag}")
    return found


def tags_on_disk(data: Path) -> dict[str, str]:
    """All tags of a registry with a folder as its storage, read from there: no API lists them all at once."""
    root = data / "docker/registry/v2/repositories"
    found = {}
    for link in root.glob("**/_manifests/tags/*/current/link"):
        tag = link.parents[1].name
        repository = link.parents[4].relative_to(root)
        found[f"{repository}:{tag}"] = link.read_text()
    return found


def everything(published: Published, **channel: Any) -> dict[str, Any]:
    return {
        "platform": {
            "channels": [{"name": "stable-1.36", "type": "ocp", **channel}],
            "kubeVirtContainer": True,
            "graph": True,
        },
        "additionalImages": [{"name": published.name("tools/tool:v1")}, {"name": published.name("tools/many")}],
    }


def catalog(published: Published, **how: Any) -> dict[str, Any]:
    return {"operators": [{"catalog": published.name("operators/example-operator-index:v1.36"), **how}]}
