"""Catalogs as images: where their documents are, and the same image with other documents in it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from hcp.errors import HcpError
from hcp.mirror.catalog import Document, Operator, dump, read_documents
from hcp.mirror.sources import Sources
from hcp.oci import image, layers
from hcp.oci.errors import broken
from hcp.oci.image import Image
from hcp.oci.reference import Reference
from hcp.oci.writer import CREATED
from hcp.oci.writer_layer import Layer, write_layer
from hcp.oci.writer_layout import DOCKER_MANIFEST_TYPE, canonical_json, put_blob

CONFIGS = "operators.operatorframework.io.index.configs.v1"
DATABASE = "operators.operatorframework.io.index.database.v1"
_DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
_OPAQUE = ".wh..wh..opq"
# Catalogs of many packages in one file are large.
MAX_CATALOG_FILE = 512 << 20
MAX_CATALOG_LAYER = 8 << 30
_CACHE = "--cache-dir"
_ENFORCE = "--cache-enforce-integrity"


async def folder_of(sources: Sources, ref: Reference, name: str) -> str:
    """Where the image has its documents; HcpError when it is no file-based catalog."""
    config = await sources.patiently(lambda: sources.client(ref).config(ref))
    labels = (config.get("config") or {}).get("Labels") or {}
    found = str(labels.get(CONFIGS) or "").strip("/")
    if found:
        return found
    cause = "it holds a database" if labels.get(DATABASE) else f"it has no label {CONFIGS}"
    raise HcpError(
        f"the catalog {name} is not file-based",
        cause=cause,
        hint="name a file-based catalog; opm migrate makes one of an older one",
    )


async def documents(
    sources: Sources, ref: Reference, folder: str, packages: Collection[str], kept: Path
) -> list[Document]:
    """As `read`, once for a digest: an image that did not change is not fetched again."""
    asked = hashlib.sha256(f"{ref.digest} {folder} {sorted(packages)}".encode()).hexdigest()
    path = kept / f"documents-{asked[:16]}.json"
    if path.is_file():
        found: list[Document] = json.loads(await asyncio.to_thread(path.read_bytes))
        return found
    found = await read(sources, ref, folder, packages)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found))
    part.rename(path)
    return found


async def read(sources: Sources, ref: Reference, folder: str, packages: Collection[str]) -> list[Document]:
    """The documents of the named packages, or of all. Files are read one by one: catalogs are large."""
    client = sources.client(ref)
    manifest = await sources.patiently(lambda: client.manifest(ref))
    found: dict[str, list[Document]] = {}
    for layer in manifest.layers:
        digest = str(layer.get("digest"))

        async def open_layer(digest: str = digest) -> Any:
            return await client.open_blob(ref, digest, limit=MAX_CATALOG_LAYER)

        with await sources.patiently(open_layer) as file:
            try:
                await asyncio.to_thread(_read_layer, file, folder, packages, found)
            except layers.Unreadable as error:
                raise broken(str(ref), f"layer {digest}: {error}") from error
    return [one for path in sorted(found) for one in found[path]]


def _read_layer(file: Any, folder: str, packages: Collection[str], found: dict[str, list[Document]]) -> None:
    """What one layer adds and hides."""
    for path, data in layers.each_below(file, folder, MAX_CATALOG_FILE):
        parent, _, name = path.rpartition("/")
        if name == _OPAQUE:
            _forget(found, parent)
        elif name.startswith(".wh."):
            _forget(found, f"{parent}/{name.removeprefix('.wh.')}")
        elif name.endswith((".json", ".yaml", ".yml")):
            found[path] = [kept for one in read_documents(path, data) if (kept := _wanted(one, packages))]


def _forget(found: dict[str, list[Document]], path: str) -> None:
    for known in [one for one in found if one == path or one.startswith(f"{path}/")]:
        del found[known]


def _wanted(one: Document, packages: Collection[str]) -> Document | None:
    """Of packages that nobody asked for only the names: they are told when one is misspelled."""
    is_package = one.get("schema") == "olm.package"
    name = one.get("name") if is_package else one.get("package")
    if not packages or name in packages:
        return one
    return {"schema": "olm.package", "name": name} if is_package else None


async def rebuild(sources: Sources, ref: Reference, folder: str, operators: Iterable[Operator], made: Path) -> str:
    """The catalog with these operators alone, for each of its platforms: its digest. Only new parts are made."""
    layer = Layer("the filtered catalog")
    layer.file(f"{folder}/{_OPAQUE}", b"")
    for operator in operators:
        layer.file(f"{folder}/{operator.name}/catalog.json", dump(operator))
    base = await sources.image(ref)
    blobs = made / "blobs" / "sha256"
    configs = {}
    for one in base.manifests:
        if not one.children:
            digest = str(json.loads(one.raw)["config"]["digest"])
            place = ref.with_digest(one.digest)
            raw = await sources.patiently(lambda p=place, d=digest: sources.client(ref).blob(p, d))  # type: ignore[misc]
            configs[one.digest] = json.loads(raw)
    caches = {cache for config in configs.values() if (cache := _cache(config))}
    for cache in caches:
        empty(layer, cache)
    blob = write_layer(layer, blobs)
    descriptor = {"mediaType": blob.media_type, "digest": blob.digest, "size": blob.size}
    return _again(base, configs, descriptor, blob.diff_id, blobs)


def empty(layer: Layer, folder: str) -> None:
    """A folder with nothing in it that whoever runs the catalog may write to: clusters choose the user."""
    if folder.startswith("tmp/"):  # a layer says anew what its folders are
        layer.directory("tmp", mode=0o1777)
    layer.directory(folder, mode=0o777)
    layer.file(f"{folder}/{_OPAQUE}", b"")


def _again(base: Image, configs: Mapping[str, Any], layer: dict[str, Any], diff_id: str, blobs: Path) -> str:
    body = json.loads(base.raw)
    if base.children:
        moved = {child.digest: _again(child, configs, layer, diff_id, blobs) for child in base.children}
        for entry in body["manifests"]:
            entry["digest"] = moved[entry["digest"]]
            entry["size"] = (blobs / entry["digest"].removeprefix("sha256:")).stat().st_size
        return put_blob(blobs, canonical_json(body))
    raw = canonical_json(_config(configs[base.digest], diff_id))
    body["config"] |= {"digest": put_blob(blobs, raw), "size": len(raw)}
    docker = image.kind_of(body) == DOCKER_MANIFEST_TYPE
    body["layers"] = [*body["layers"], {**layer, "mediaType": _DOCKER_LAYER} if docker else layer]
    return put_blob(blobs, canonical_json(body))


def _config(config: Mapping[str, Any], diff_id: str) -> dict[str, Any]:
    """With one more layer; what was computed ahead of the old documents is computed anew when it starts."""
    made = {key: value for key, value in config.items() if key != "created"} | {"created": CREATED}
    rootfs = config.get("rootfs") or {"type": "layers", "diff_ids": []}
    made["rootfs"] = {**rootfs, "diff_ids": [*rootfs.get("diff_ids", ()), diff_id]}
    made["history"] = [*(config.get("history") or ()), {"created": CREATED, "created_by": "the filtered catalog"}]
    runs = dict(config.get("config") or {})
    command = [word for word in runs.get("Cmd") or () if not str(word).startswith(_ENFORCE)]
    if _cache(config):
        command.append(f"{_ENFORCE}=false")
    if command:
        runs["Cmd"] = command
    made["config"] = runs
    return made


def _cache(config: Mapping[str, Any]) -> str:
    """The folder with what was computed ahead, if there is one."""
    words = [str(word) for word in (config.get("config") or {}).get("Cmd") or ()]
    for number, word in enumerate(words):
        if word.startswith(f"{_CACHE}="):
            return word.partition("=")[2].strip("/")
        if word == _CACHE and number + 1 < len(words):
            return words[number + 1].strip("/")
    return ""


def made_name(ref: Reference, digest: str) -> str:
    """A folder's name for what is made of a catalog."""
    return f"catalog-{hashlib.sha256(f'{ref.name}@{digest}'.encode()).hexdigest()[:16]}"
