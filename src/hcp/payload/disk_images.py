"""Images that a node's disk brings along: what runs on every node, already unpacked.

Under emulation a node needs about three times as long to pull and unpack these as to boot. They are found by the same
references by digest that the release names, so a cluster with other images simply pulls those.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

from hcp.oci.writer_layout import Layout, link_blob, read_layout, write_index
from hcp.payload.context import BuildContext
from hcp.payload.image import reference
from hcp.payload.versions import recipe_dir

_KEPT = (
    "io.containerd.content.v1.content",
    "io.containerd.metadata.v1.bolt",
    "io.containerd.snapshotter.v1.overlayfs",
)


def node_images(minor: str) -> dict[str, str]:
    """Repository → component of the images that every node of a cluster runs."""
    return {
        "hcp/pause": "image-pause",
        "hcp/haproxy": "image-haproxy",
        "hcp/flannel": "image-flannel",
        "hcp/kube-proxy": f"image-kube-proxy-{minor}",
        "hcp/konnectivity-agent": "image-konnectivity-agent",
        "hcp/coredns": "image-coredns",
    }


def preload(ctx: BuildContext, images: Mapping[str, str], directory: Path) -> None:
    """Puts images into what becomes /var/lib/containerd of the node."""
    ctx.say("unpacking the images of a node")
    archives, layers = [], dict[str, None]()
    for repository, component in images.items():
        layout = read_layout(ctx.dep(component) / "image")
        layers.update(dict.fromkeys(item["digest"] for item in layout.manifest["layers"]))
        archives.append(_archive(layout, reference(repository, layout.digest), ctx.scratch / "preload"))
    packed = ctx.scratch / "preload" / "layers"
    packed.write_text("".join(f"{digest}\n" for digest in layers))
    directory.mkdir(parents=True)
    programs = [ctx.dep("containerd") / "bin" / name for name in ("containerd", "ctr")]
    script = recipe_dir("node-disk") / "preload.sh"
    alone = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    ctx.run([*alone, "sh", script, *programs, directory, packed, *archives])
    for digest in layers:  # containerd forgot them, but would remove the files only some time later
        blob = directory / _KEPT[0] / "blobs" / "sha256" / digest.removeprefix("sha256:")
        blob.unlink(missing_ok=True)
    for path in directory.iterdir():
        if path.name not in _KEPT:
            shutil.rmtree(path)
    shutil.rmtree(ctx.scratch / "preload")


def _archive(layout: Layout, name: str, folder: Path) -> Path:
    """The layout as a tar in which the image has the name that pods will ask for."""
    named = folder / layout.digest.removeprefix("sha256:")
    blobs = named / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for digest in (layout.digest, *(item["digest"] for item in layout.blobs)):
        link_blob(layout.blob(digest), blobs)
    size = layout.blob(layout.digest).stat().st_size
    write_index(named, layout.digest, size, {"io.containerd.image.name": name})
    archive = folder / f"{named.name}.tar"
    with tarfile.open(archive, "w") as out:
        out.add(named, arcname=".")
    shutil.rmtree(named)
    return archive
