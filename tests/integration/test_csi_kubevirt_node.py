"""The Node service with real disks, file systems and mounts: loop devices stand for what is plugged into a machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from hcp.csi import rpc
from hcp.csi.kubevirt import handles
from hcp.csi.kubevirt.node import mounts
from hcp.csi.kubevirt.node.disks import Disks
from hcp.csi.kubevirt.node.service import NodeService
from hcp.csi.serving import connect, serving
from hcp.csi.wire import csi_pb2 as csi

MI = 2**20
_Mode = csi.VolumeCapability.AccessMode
# Growing a mounted ext4 asks for it; containers and sandboxes often lack it even as root.
CAP_SYS_RESOURCE = 24
may_grow = pytest.mark.skipif(
    not int(Path("/proc/self/status").read_text().split("CapEff:")[1].split()[0], 16) >> CAP_SYS_RESOURCE & 1,
    reason="growing a mounted file system needs CAP_SYS_RESOURCE",
)
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root"),
    pytest.mark.skipif(not Path("/dev/loop-control").exists(), reason="the kernel has no loop devices"),
]


@dataclass
class Machine:
    """Disks that come and go, under a folder that stands for /sys."""

    folder: Path
    loops: list[str]

    @property
    def disks(self) -> Disks:
        return Disks(sys=self.folder / "sys", patience=2.0)

    def plug(self, handle: str, size: int = 32 * MI) -> Path:
        image = self.folder / f"{handle}.img"
        if not image.exists():
            with image.open("wb") as file:
                file.truncate(size)
        device = subprocess.run(
            ["losetup", "--show", "-f", str(image)], check=True, capture_output=True, text=True
        ).stdout.strip()
        self.loops.append(device)
        name = Path(device).name
        shown = self.folder / "sys" / "block" / name
        shown.mkdir(parents=True)
        (shown / "serial").write_text(handles.serial(handle))
        for fact in ("size", "dev"):
            (shown / fact).symlink_to(f"/sys/block/{name}/{fact}")
        return Path(device)

    def unplug(self, device: Path) -> None:
        shutil.rmtree(self.folder / "sys" / "block" / device.name)
        subprocess.run(["losetup", "-d", str(device)], check=True)
        self.loops.remove(str(device))

    def grow(self, handle: str, device: Path, size: int) -> None:
        os.truncate(self.folder / f"{handle}.img", size)
        subprocess.run(["losetup", "-c", str(device)], check=True)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    (tmp_path / "sys" / "block").mkdir(parents=True)
    made = Machine(tmp_path, [])
    yield made
    below = [one.point for one in mounts.parse(mounts.MOUNTINFO.read_text()) if one.point.startswith(f"{tmp_path}/")]
    for point in reversed(below):
        subprocess.run(["umount", point], check=False)
    for device in list(made.loops):
        subprocess.run(["losetup", "-d", device], check=False)


@pytest.fixture
async def node(machine: Machine, tmp_path: Path) -> AsyncIterator[Any]:
    async with (
        serving(tmp_path / "csi.sock", {rpc.NODE: NodeService("one", machine.disks)}),
        connect(tmp_path / "csi.sock") as channel,
    ):

        async def ask(request: Any) -> Any:
            return await rpc.call(channel, request, within=60)

        yield ask


def use(*, block: bool = False, mode: Any = _Mode.SINGLE_NODE_WRITER, kind: str = "ext4") -> Any:
    access = _Mode(mode=mode)
    if block:
        return csi.VolumeCapability(access_mode=access, block=csi.VolumeCapability.BlockVolume())
    return csi.VolumeCapability(access_mode=access, mount=csi.VolumeCapability.MountVolume(fs_type=kind))


def stage(handle: str, at: Path, capability: Any = None) -> Any:
    return csi.NodeStageVolumeRequest(
        volume_id=handle, staging_target_path=str(at), volume_capability=capability or use()
    )


def publish(handle: str, staging: Path, target: Path, capability: Any = None, *, readonly: bool = False) -> Any:
    return csi.NodePublishVolumeRequest(
        volume_id=handle,
        staging_target_path=str(staging),
        target_path=str(target),
        volume_capability=capability or use(),
        readonly=readonly,
    )


async def code(answer: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await answer
    return caught.value.code()


async def test_data_survives_everything_that_happens_to_a_volume(machine: Machine, node: Any, tmp_path: Path) -> None:
    staging, target = tmp_path / "stage", tmp_path / "pods" / "one"
    device = machine.plug("pvc-1")
    for _ in range(2):  # a repeated call changes nothing
        await node(stage("pvc-1", staging))
        await node(publish("pvc-1", staging, target))
    (target / "kept").write_text("bytes")
    usage = (await node(csi.NodeGetVolumeStatsRequest(volume_id="pvc-1", volume_path=str(target)))).usage
    assert usage[0].total > 20 * MI and usage[1].total > 0
    for _ in range(2):
        await node(csi.NodeUnpublishVolumeRequest(volume_id="pvc-1", target_path=str(target)))
        await node(csi.NodeUnstageVolumeRequest(volume_id="pvc-1", staging_target_path=str(staging)))
    assert not target.exists() and mounts.at_point(staging) is None
    machine.unplug(device)
    # The same disk under another name, as on another machine.
    machine.plug("other")
    machine.plug("pvc-1")
    await node(stage("pvc-1", staging))
    await node(publish("pvc-1", staging, target, readonly=True))
    assert (target / "kept").read_text() == "bytes"
    with pytest.raises(OSError, match="Read-only"):
        (target / "new").write_text("x")


async def test_a_new_process_knows_what_is_mounted(machine: Machine, node: Any, tmp_path: Path) -> None:
    machine.plug("pvc-2")
    await node(stage("pvc-2", tmp_path / "stage"))
    restarted = NodeService("one", machine.disks)
    await restarted.node_stage_volume(stage("pvc-2", tmp_path / "stage"))
    await restarted.node_publish_volume(publish("pvc-2", tmp_path / "stage", tmp_path / "pod"))
    points = [m for m in mounts.parse(mounts.MOUNTINFO.read_text()) if m.point == str(tmp_path / "stage")]
    assert len(points) == 1, "nothing is mounted twice"
    await restarted.node_unpublish_volume(
        csi.NodeUnpublishVolumeRequest(volume_id="pvc-2", target_path=str(tmp_path / "pod"))
    )


@may_grow
async def test_a_mounted_volume_grows_with_its_disk_and_waits_for_it(
    machine: Machine, node: Any, tmp_path: Path
) -> None:
    staging = tmp_path / "stage"
    device = machine.plug("pvc-3")
    await node(stage("pvc-3", staging))
    before = os.statvfs(staging).f_blocks
    request = csi.NodeExpandVolumeRequest(
        volume_id="pvc-3", volume_path=str(staging), capacity_range=csi.CapacityRange(required_bytes=96 * MI)
    )
    assert await code(node(request)) == grpc.StatusCode.UNAVAILABLE, "the disk has not grown"
    machine.grow("pvc-3", device, 96 * MI)
    assert (await node(request)).capacity_bytes == 96 * MI
    assert os.statvfs(staging).f_blocks > 2 * before


@may_grow
async def test_a_copy_of_something_smaller_fills_its_disk(machine: Machine, node: Any, tmp_path: Path) -> None:
    first = machine.plug("pvc-4")
    await node(stage("pvc-4", tmp_path / "first"))
    (tmp_path / "first" / "kept").write_text("bytes")
    await node(csi.NodeUnstageVolumeRequest(volume_id="pvc-4", staging_target_path=str(tmp_path / "first")))
    machine.unplug(first)
    shutil.copyfile(tmp_path / "pvc-4.img", tmp_path / "pvc-5.img")
    os.truncate(tmp_path / "pvc-5.img", 96 * MI)
    machine.plug("pvc-5")
    await node(stage("pvc-5", tmp_path / "second"))
    assert (tmp_path / "second" / "kept").read_text() == "bytes"
    found = os.statvfs(tmp_path / "second")
    assert found.f_blocks * found.f_frsize > 64 * MI


async def test_a_pod_gets_the_disk_itself_when_it_asks_for_a_block_volume(
    machine: Machine, node: Any, tmp_path: Path
) -> None:
    staging, target = tmp_path / "stage", tmp_path / "pod" / "disk"
    device = machine.plug("pvc-6")
    block = use(block=True)
    for _ in range(2):
        await node(stage("pvc-6", staging, block))
        await node(publish("pvc-6", staging, target, block))
    assert target.is_block_device() and target.stat().st_rdev == device.stat().st_rdev
    usage = (await node(csi.NodeGetVolumeStatsRequest(volume_id="pvc-6", volume_path=str(target)))).usage
    assert usage[0].total == 32 * MI
    await node(csi.NodeUnpublishVolumeRequest(volume_id="pvc-6", target_path=str(target)))
    assert not target.exists()


async def test_what_is_on_a_disk_is_never_overwritten(machine: Machine, node: Any, tmp_path: Path) -> None:
    device = machine.plug("pvc-7")
    secret = b"LUKS\xba\xbe\x00\x01" + b"cipher".ljust(1016, b"\0")
    device.write_bytes(secret)
    assert await code(node(stage("pvc-7", tmp_path / "stage"))) == grpc.StatusCode.FAILED_PRECONDITION
    assert (tmp_path / "pvc-7.img").read_bytes()[: len(secret)] == secret


async def test_a_disk_that_is_not_there_and_bad_requests_are_told_apart(node: Any, tmp_path: Path) -> None:
    assert await code(node(stage("pvc-8", tmp_path / "stage"))) == grpc.StatusCode.NOT_FOUND
    assert await code(node(csi.NodeStageVolumeRequest(volume_id="pvc-8"))) == grpc.StatusCode.INVALID_ARGUMENT
    missing = csi.NodeGetVolumeStatsRequest(volume_id="pvc-8", volume_path=str(tmp_path / "none"))
    assert await code(node(missing)) == grpc.StatusCode.NOT_FOUND
    told = await node(csi.NodeGetInfoRequest())
    assert told.node_id == "one" and told.max_volumes_per_node == 64
