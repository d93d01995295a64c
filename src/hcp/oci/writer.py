"""Writing images without any container tool: layers in, an OCI layout directory out, the same digest every time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hcp.oci.writer_layer import Blob, Layer, capability, write_layer
from hcp.oci.writer_layout import (
    CONFIG_TYPE,
    MANIFEST_TYPE,
    Layout,
    canonical_json,
    link_blob,
    put_blob,
    read_layout,
    write_index,
)

__all__ = [
    "CREATED",
    "Blob",
    "ImageConfig",
    "Layer",
    "Layout",
    "add_image",
    "capability",
    "read_layout",
    "write_image",
    "write_layer",
]

CREATED = "2023-11-14T22:13:20Z"  # writer_layer.EPOCH as a date
DEFAULT_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class ImageConfig:
    """What a container of this image runs by default. `user` is numeric so that runAsNonRoot can be checked."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    working_directory: str = "/"
    labels: Mapping[str, str] = field(default_factory=dict)


def write_image(
    target: Path,
    name: str,
    layers: Iterable[Layer],
    config: ImageConfig,
    *,
    base: Layout | None = None,
    compress: bool = True,
) -> Layout:
    """Write a layout at `target` from the layers, put on top of `base` when one is given."""
    blobs = target / "blobs" / "sha256"
    written = []
    for layer in layers:
        with layer:
            written.append((write_layer(layer, blobs, compress=compress), layer.comment))
    return add_image(target, name, written, config, base=base)


def add_image(
    target: Path, name: str, layers: Iterable[tuple[Blob, str]], config: ImageConfig, *, base: Layout | None = None
) -> Layout:
    """Write config, manifest and index for layers whose blobs are already in `target`."""
    blobs = target / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    descriptors: list[dict[str, Any]] = []
    diff_ids: list[str] = []
    history: list[dict[str, Any]] = []
    if base is not None:
        for descriptor in base.manifest["layers"]:
            link_blob(base.blob(descriptor["digest"]), blobs)
            descriptors.append(descriptor)
        diff_ids.extend(base.config["rootfs"]["diff_ids"])
        history.extend(base.config.get("history", []))
    for blob, comment in layers:
        descriptors.append({"mediaType": blob.media_type, "digest": blob.digest, "size": blob.size})
        diff_ids.append(blob.diff_id)
        history.append({"created": CREATED, "created_by": comment or name})
    raw_config = canonical_json(_config_document(config, diff_ids, history))
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": {"mediaType": CONFIG_TYPE, "digest": put_blob(blobs, raw_config), "size": len(raw_config)},
        "layers": descriptors,
    }
    raw = canonical_json(manifest)
    digest = put_blob(blobs, raw)
    annotations = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    write_index(target, digest, len(raw), annotations)
    return read_layout(target)


def _config_document(config: ImageConfig, diff_ids: list[str], history: list[dict[str, Any]]) -> dict[str, Any]:
    runtime: dict[str, Any] = {"WorkingDir": config.working_directory}
    environment = [f"{key}={value}" for key, value in sorted(config.environment.items())]
    if "PATH" not in config.environment:
        environment.insert(0, DEFAULT_PATH)
    runtime["Env"] = environment
    if config.entrypoint:
        runtime["Entrypoint"] = list(config.entrypoint)
    if config.command:
        runtime["Cmd"] = list(config.command)
    if config.user:
        runtime["User"] = config.user
    if config.labels:
        runtime["Labels"] = dict(config.labels)
    return {
        "architecture": "amd64",
        "os": "linux",
        "created": CREATED,
        "config": runtime,
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": history,
    }
