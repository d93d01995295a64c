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
    """Images by name, and CRDs by component."""

    images: dict[str, str] = field(default_factory=dict)
    crds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def load(home: Path = HOME) -> Support:
    """From `home` if it is there, else from what the payload builder has finished."""
    file = home / "images.json"
    if file.is_file():
        try:
            images = json.loads(file.read_text())
        except ValueError as exc:
            raise HcpError(f"The list of images {file} cannot be read", cause=str(exc)) from exc
        folders = {name: home / "upstream" / name / "crds" for name in UPSTREAM}
        return Support(dict(images), {name: _read_all(folder) for name, folder in folders.items()})
    return _from_payload()


def _from_payload() -> Support:
    from hcp import payload
    from hcp.payload.image import image_digest, reference

    images = {}
    for name in (*UPSTREAM, "haproxy", "pause"):
        folder = payload.find(f"image-{name}")
        if folder is not None:
            images[name] = reference(f"hcp/{name}", image_digest(folder))
    crds = {}
    for name in UPSTREAM:
        folder = payload.find(name)
        if folder is not None:
            crds[name] = _read_all(folder / "manifests" / "crds")
    return Support(images, crds)


def _read_all(folder: Path) -> list[dict[str, Any]]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.yaml")):
        documents = yaml.load_all(path.read_text(), Loader=loader)
        found += [d for d in documents if isinstance(d, dict) and d.get("kind") == "CustomResourceDefinition"]
    return found
