"""Built images as somebody finds them who puts them into a registry."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from hcp.payload.image import REGISTRY
from hcp.payload.registry import default_registry

OPERATOR = "image-hcp"


def with_parts(names: Iterable[str]) -> list[str]:
    """The components themselves and the images they refer to."""
    registry = default_registry()
    found = dict.fromkeys(names)
    for name in list(found):
        found.update(dict.fromkeys(dep for dep in registry.get(name).deps if dep.startswith(("image-", "node-disk-"))))
    return list(found)


def is_image(artifact: Path) -> bool:
    return (artifact / "image" / "index.json").is_file()


def repository(artifact: Path) -> str:
    """Where an image belongs, as its builder wrote into it: `registry.hcp.test:5000/hcp/x:1` → `hcp/x`."""
    return _named(artifact).rpartition(":")[0].removeprefix(f"{REGISTRY}/")


def tag(artifact: Path) -> str:
    return _named(artifact).rpartition(":")[2]


def _named(artifact: Path) -> str:
    (entry,) = json.loads((artifact / "image" / "index.json").read_text())["manifests"]
    name: str = entry["annotations"]["org.opencontainers.image.ref.name"]
    return name
