"""What a node's document tells containerd, followed by a real one."""

from __future__ import annotations

import shlex
import subprocess
import tarfile
import tomllib
from pathlib import Path

import yaml
from tests.support.containerd import containerd
from tests.support.eventually import eventually

from hcp import payload
from hcp.ignition.containerd import containerd_config
from hcp.ignition.disk_images import LIST, SCRIPT, disk_images_document
from hcp.ignition.document import read_data_url
from hcp.ignition.machineconfig import joined, machine_config
from hcp.ignition.node import NodeInput, node_document
from hcp.ignition.podnetwork import pod_network_document
from hcp.oci.writer import read_layout
from hcp.oci.writer_layout import write_index
from hcp.payload.image import reference
from hcp.payload.versions import recipe_dir


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
        script = files[SCRIPT].replace(LIST, shlex.quote(str(tmp_path / "list")))
        for _ in range(2):  # at every boot
            subprocess.run(["sh", "-c", script], env=node.environment, check=True)
        assert absent not in node.images()

        async def pinned() -> bool:
            return "io.cri-containerd.pinned=pinned" in node.images()[published]

        await eventually(pinned, "containerd keeps it as the image of sandboxes")


def test_all_files_of_a_nodes_document_join_the_configuration_of_the_disk(tmp_path: Path) -> None:
    """containerd says itself what it makes of them; nothing of one file takes away what another has set."""
    runtime = {"kind": "ContainerRuntimeConfig", "spec": {"containerRuntimeConfig": {"logLevel": "debug"}}}
    network = machine_config("25-pod-network", pod_network_document(["10.132.0.0/14"], ["172.31.0.0/16"]))
    raw = joined([yaml.safe_dump(runtime), yaml.safe_dump(network)])
    document = node_document(
        NodeInput(raw, "kubeconfig", "CA", ["172.31.0.0/16"], "registry.example.com/pause@sha256:1")
    )
    for entry in document["storage"]["files"]:
        if entry["path"].startswith("/etc/containerd/conf.d/"):
            (tmp_path / Path(entry["path"]).name).write_bytes(read_data_url(entry["contents"]["source"]))
    disk = (recipe_dir("node-disk") / "root" / "etc" / "containerd" / "config.toml").read_text()
    (tmp_path / "disk-config").write_text(disk.replace("/etc/containerd/conf.d/", f"{tmp_path}/"))
    program = payload.ensure(["containerd"])["containerd"] / "bin" / "containerd"
    said = subprocess.run(
        [program, "--config", tmp_path / "disk-config", "config", "dump"], capture_output=True, text=True, check=True
    )
    found = tomllib.loads(said.stdout)
    runtime_plugin = found["plugins"]["io.containerd.cri.v1.runtime"]
    assert found["debug"]["level"] == "debug"
    assert found["plugins"]["io.containerd.cri.v1.images"]["pinned_images"]["sandbox"].startswith(
        "registry.example.com"
    )
    assert runtime_plugin["cni"]["conf_template"] and runtime_plugin["cni"]["use_internal_loopback"] is True
    assert runtime_plugin["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is True
