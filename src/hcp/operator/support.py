"""What the operator carries besides its code: images of support programs and Cluster API's definitions.

In its image they lie under /opt/hcp; on a developer's machine they come from the payload cache.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hcp.errors import HcpError

HOME = Path("/opt/hcp")
UPSTREAM = ("cluster-api", "cluster-api-kubevirt")


@dataclass(frozen=True)
class Support:
    """Images by name, CRDs by component, and components whose image is an official build."""

    images: dict[str, str] = field(default_factory=dict)
    crds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    official: frozenset[str] = frozenset()


def load(home: Path = HOME) -> Support:
    """From `home` if it is there, else from what the payload builder has finished."""
    file = home / "images.json"
    if file.is_file():
        try:
            images = json.loads(file.read_text())
        except ValueError as exc:
            raise HcpError(f"The list of images {file} cannot be read", cause=str(exc)) from exc
        folders = {name: home / "upstream" / name for name in UPSTREAM}
        crds = {name: _read_all(folder / "crds") for name, folder in folders.items()}
        official = frozenset(name for name, folder in folders.items() if (folder / "official").exists())
        return Support(dict(images), crds, official)
    return _from_payload()


def _from_payload() -> Support:
    from hcp import payload
    from hcp.payload.builders.capi import is_official
    from hcp.payload.image import image_digest, reference

    images, official = {}, set()
    for name in (*UPSTREAM, "haproxy", "pause"):
        folder = payload.find(f"image-{name}")
        if folder is not None:
            images[name] = reference(f"hcp/{name}", image_digest(folder))
            official |= {name} if name in UPSTREAM and is_official(folder) else set()
    crds = {}
    for name in UPSTREAM:
        folder = payload.find(name)
        if folder is not None:
            crds[name] = _read_all(folder / "manifests" / "crds")
    return Support(images, crds, frozenset(official))


def _read_all(folder: Path) -> list[dict[str, Any]]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.yaml")):
        documents = yaml.load_all(path.read_text(), Loader=loader)
        found += [d for d in documents if isinstance(d, dict) and d.get("kind") == "CustomResourceDefinition"]
    return found
