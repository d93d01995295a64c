"""An OCI image layout on disk: blobs named by digest and an index that names the one image inside."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hcp.errors import HcpError

INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
DOCKER_MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_INDEX_TYPE = "application/vnd.docker.distribution.manifest.list.v2+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"


@dataclass(frozen=True)
class Layout:
    """A finished layout with exactly one image."""

    path: Path
    digest: str
    manifest: dict[str, Any]

    @property
    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = json.loads(self.blob(self.manifest["config"]["digest"]).read_bytes())
        return config

    @property
    def blobs(self) -> list[dict[str, Any]]:
        """The descriptors of everything the manifest needs: config first, then the layers."""
        return [self.manifest["config"], *self.manifest["layers"]]

    @property
    def size(self) -> int:
        return sum(int(descriptor["size"]) for descriptor in self.blobs)

    def blob(self, digest: str) -> Path:
        return self.path / "blobs" / "sha256" / digest.removeprefix("sha256:")


def canonical_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def put_blob(blobs: Path, data: bytes) -> str:
    digest = hashlib.sha256(data).hexdigest()
    blobs.mkdir(parents=True, exist_ok=True)
    (blobs / digest).write_bytes(data)
    return f"sha256:{digest}"


def link_blob(source: Path, blobs: Path) -> None:
    """Share a blob of another layout: a hard link where the file system allows it, so a base costs no space twice."""
    target = blobs / source.name
    if target.exists():
        return
    try:
        os.link(source, target)
    except OSError:
        target.write_bytes(source.read_bytes())


def write_index(
    layout: Path, manifest_digest: str, size: int, annotations: Mapping[str, str], media_type: str = MANIFEST_TYPE
) -> None:
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX_TYPE,
        "manifests": [
            {
                "mediaType": media_type,
                "digest": manifest_digest,
                "size": size,
                "platform": {"architecture": "amd64", "os": "linux"},
                "annotations": dict(annotations),
            }
        ],
    }
    (layout / "index.json").write_bytes(canonical_json(index))
    (layout / "oci-layout").write_bytes(canonical_json({"imageLayoutVersion": "1.0.0"}))


def read_layout(path: Path) -> Layout:
    """Open a layout and refuse one that is not whole: sizes and the digests of the small blobs are checked."""
    try:
        index = json.loads((path / "index.json").read_bytes())
        (descriptor,) = index["manifests"]
        digest = str(descriptor["digest"])
        raw = (path / "blobs" / "sha256" / digest.removeprefix("sha256:")).read_bytes()
        layout = Layout(path, digest, json.loads(raw))
        damaged = [
            item["digest"] for item in layout.blobs if layout.blob(item["digest"]).stat().st_size != item["size"]
        ]
    except (OSError, ValueError, KeyError) as error:
        raise HcpError(f"{path} is not a whole OCI layout", cause=str(error), hint="build it again") from error
    if damaged or f"sha256:{hashlib.sha256(raw).hexdigest()}" != digest:
        raise HcpError(f"the OCI layout {path} is damaged", cause=", ".join(damaged) or digest, hint="build it again")
    return layout
