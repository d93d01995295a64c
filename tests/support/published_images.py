"""Small images that stand in for hcp's own: made by the same writer, named and linked in the same way."""

from __future__ import annotations

import json
import random
from pathlib import Path

from hcp.oci.writer import ImageConfig, Layer, Layout, read_layout, write_image
from hcp.payload.image import REGISTRY, image_digest, reference
from hcp.payload.release import Tag, release_files

# More than fits into one request without asking again, so that breaks are continued.
BIG = 6 << 20
VERSION = "1.36.3"


def _image(folder: Path, name: str, version: str, size: int, base: Layout | None = None, **files: bytes) -> Path:
    layer = Layer(name)
    layer.file(f"data/{name}", random.Random(name).randbytes(size))
    for path, data in files.items():
        layer.file(path, data)
    config = ImageConfig(entrypoint=(name,), user="1001", environment={"HOME": "/tmp"})
    write_image(folder / "image", f"{REGISTRY}/hcp/{name}:{version}", [layer], config, base=base)
    return folder


def artifacts(folder: Path, version: str = VERSION, *, big: int = BIG) -> dict[str, Path]:
    """The operator, a release and what they name. Two of them share a base of a good size."""
    base = read_layout(_image(folder / "base", "base", "1", 2 << 20) / "image")
    found = {
        "image-etcd": _image(folder / "etcd", "etcd", "3.6.5", big),
        "image-kube-apiserver": _image(folder / "api", "kube-apiserver", version, 1000, base),
        "image-haproxy": _image(folder / "haproxy", "haproxy", "debian", 1000, base),
        "node-disk-1.36": _image(folder / "disk", "node-disk", version, 3000),
    }

    def where(name: str, component: str) -> str:
        return reference(f"hcp/{name}", image_digest(found[component]))

    tags = [
        Tag("etcd", where("etcd", "image-etcd"), "etcd=3.6.5"),
        Tag("kube-apiserver", where("kube-apiserver", "image-kube-apiserver"), f"kubernetes={version}"),
    ]
    layer = Layer("release")
    for name, text in release_files(version, tags, where("node-disk", "node-disk-1.36")).items():
        layer.file(f"release-manifests/{name}", text)
    config = ImageConfig(labels={"io.openshift.release": version})
    write_image(folder / "release" / "image", f"{REGISTRY}/hcp/release:{version}", [layer], config)
    images = json.dumps({"haproxy": where("haproxy", "image-haproxy")}).encode()
    operator = _image(folder / "hcp", "hcp", "0.1.0", 1000, base, **{"opt/hcp/images.json": images})
    return {**found, f"release-{'.'.join(version.split('.')[:2])}": folder / "release", "image-hcp": operator}
