"""What a node's document tells containerd, followed by a real one."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

from tests.support.containerd import containerd
from tests.support.eventually import eventually

from hcp import payload
from hcp.ignition.containerd import containerd_config
from hcp.ignition.disk_images import LIST, SCRIPT, disk_images_document
from hcp.ignition.document import read_data_url
from hcp.oci.writer import read_layout
from hcp.oci.writer_layout import write_index
from hcp.payload.image import reference


def _archive(layout_folder: Path, name: str, target: Path) -> None:
    """The layout as a tar in which its image has this name."""
    layout = read_layout(layout_folder)
    copy = target.with_suffix("")
    subprocess.run(["cp", "-r", layout_folder, copy], check=True)
    size = layout.blob(layout.digest).stat().st_size
    write_index(copy, layout.digest, size, {"io.containerd.image.name": name})
    with tarfile.open(target, "w") as out:
        out.add(copy, arcname=".")


async def test_the_disks_pause_is_found_by_the_name_of_a_published_release(tmp_path: Path) -> None:
    image = payload.ensure(["image-pause"])["image-pause"] / "image"
    digest = read_layout(image).digest
    built = reference("hcp/pause", digest)
    published = f"registry.example.com/team/hcp/pause@{digest}"
    absent = f"registry.example.com/team/hcp/etcd@sha256:{'0' * 64}"
    _archive(image, built, tmp_path / "pause.tar")
    with containerd(tmp_path / "node", {"conf-release.toml": containerd_config(published)}) as node:
        node.ctr("images", "import", "--local", "--snapshotter", "overlayfs", str(tmp_path / "pause.tar"))
        document = disk_images_document([absent, published])
        files = {f["path"]: read_data_url(f["contents"]["source"]).decode() for f in document["storage"]["files"]}
        (tmp_path / "list").write_text(files[LIST])
        script = files[SCRIPT].replace(LIST, str(tmp_path / "list"))
        for _ in range(2):  # at every boot
            subprocess.run(["sh", "-c", script], env=node.environment, check=True)
        assert absent not in node.images()

        async def pinned() -> bool:
            return "io.cri-containerd.pinned=pinned" in node.images()[published]

        await eventually(pinned, "containerd keeps it as the image of sandboxes")
