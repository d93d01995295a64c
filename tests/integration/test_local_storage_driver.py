"""The embedded cluster's storage driver by its socket, on a real btrfs and with real mounts; needs root."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from tests.support.eventually import eventually
from tests.support.pool import SIZE, btrfs_pool

from hcp.csi import rpc
from hcp.csi.local.driver import serve
from hcp.csi.local.names import DRIVER, loop_label
from hcp.csi.serving import connect
from hcp.csi.wire import csi_pb2 as csi
from hcp.csi.wire import registration_pb2 as registration
from hcp.linux import btrfs, loop, mounts

# Devices of the whole machine are found by it, whoever else runs tests here.
NODE = f"test-node-{os.getpid()}"
MIB = 1 << 20
Mode = csi.VolumeCapability.AccessMode
FILES = csi.VolumeCapability(
    mount=csi.VolumeCapability.MountVolume(), access_mode=Mode(mode=Mode.MULTI_NODE_MULTI_WRITER)
)
BLOCK = csi.VolumeCapability(
    block=csi.VolumeCapability.BlockVolume(), access_mode=Mode(mode=Mode.MULTI_NODE_MULTI_WRITER)
)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with btrfs_pool(tmp_path_factory.mktemp("pool")) as found:
        yield found
        loop.detach_labelled(loop_label(NODE))


class Driver:
    """Asks the driver, and remembers where volumes were put."""

    def __init__(self, channel: grpc.aio.Channel, folder: Path) -> None:
        self.channel = channel
        self.folder = folder
        self.placed: set[tuple[str, Path]] = set()

    async def __call__(self, request: Message) -> Any:
        return await rpc.call(self.channel, request, within=60)

    async def refused(self, request: Message) -> grpc.StatusCode:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self(request)
        return caught.value.code()

    async def create(self, name: str, size: int, how: csi.VolumeCapability = FILES, **more: Any) -> str:
        wanted = csi.CapacityRange(required_bytes=size)
        request = csi.CreateVolumeRequest(name=name, capacity_range=wanted, volume_capabilities=[how], **more)
        made = (await self(request)).volume
        assert made.capacity_bytes == size
        return str(made.volume_id)

    async def publish(self, volume: str, place: str, how: csi.VolumeCapability = FILES, **more: Any) -> Path:
        target = self.folder / "pods" / place
        request = csi.NodePublishVolumeRequest(volume_id=volume, target_path=str(target), volume_capability=how, **more)
        await self(request)
        self.placed.add((volume, target))
        return target

    async def unpublish(self, volume: str, target: Path) -> None:
        await self(csi.NodeUnpublishVolumeRequest(volume_id=volume, target_path=str(target)))
        self.placed.discard((volume, target))

    async def snapshot(self, volume: str, name: str) -> str:
        made = (await self(csi.CreateSnapshotRequest(name=name, source_volume_id=volume))).snapshot
        assert made.ready_to_use
        return str(made.snapshot_id)

    async def grow(self, volume: str, size: int) -> None:
        wanted = csi.CapacityRange(required_bytes=size)
        grown = await self(csi.ControllerExpandVolumeRequest(volume_id=volume, capacity_range=wanted))
        assert (grown.capacity_bytes, grown.node_expansion_required) == (size, False)

    async def sweep(self) -> None:
        for volume, target in sorted(self.placed):
            await self.unpublish(volume, target)
        for entry in (await self(csi.ListSnapshotsRequest())).entries:
            await self(csi.DeleteSnapshotRequest(snapshot_id=entry.snapshot.snapshot_id))
        for found in (await self(csi.ListVolumesRequest())).entries:
            await self(csi.DeleteVolumeRequest(volume_id=found.volume.volume_id))


@pytest.fixture
async def driver(pool: Path, tmp_path: Path) -> AsyncIterator[Driver]:
    socket = tmp_path / "csi.sock"
    running = asyncio.ensure_future(serve(pool / "csi", NODE, socket, tmp_path / "reg.sock"))

    async def answers() -> bool:
        if running.done():
            await running
        return (tmp_path / "reg.sock").exists()

    await eventually(answers, "the driver answers")
    try:
        async with connect(socket) as channel:
            made = Driver(channel, tmp_path)
            yield made
            loop.detach_labelled(loop_label(NODE))
            await made.sweep()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def from_snapshot(key: str) -> csi.VolumeContentSource:
    return csi.VolumeContentSource(snapshot=csi.VolumeContentSource.SnapshotSource(snapshot_id=key))


def from_volume(key: str) -> csi.VolumeContentSource:
    return csi.VolumeContentSource(volume=csi.VolumeContentSource.VolumeSource(volume_id=key))


def fill(path: Path, most: int) -> int:
    """Writes until the file system refuses."""
    total, piece = 0, os.urandom(MIB)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while total < most:
            total += os.write(descriptor, piece)
            os.fsync(descriptor)
    except OSError as error:
        assert error.errno in (errno.EDQUOT, errno.ENOSPC)
    finally:
        os.close(descriptor)
    return total


async def test_the_kubelet_finds_the_driver(driver: Driver, tmp_path: Path) -> None:
    async with connect(tmp_path / "reg.sock") as channel:
        info = await rpc.call(channel, registration.InfoRequest(), within=60)
    assert (info.name, info.endpoint) == (DRIVER, str(tmp_path / "csi.sock"))
    assert (await driver(csi.NodeGetInfoRequest())).node_id == NODE


async def test_two_pods_share_a_volume_of_files(driver: Driver) -> None:
    volume = await driver.create("shared", 64 * MIB)
    one, two = await driver.publish(volume, "one"), await driver.publish(volume, "two")
    (one / "hello").write_text("from one")
    assert (two / "hello").read_text() == "from one"
    await driver.unpublish(volume, one)
    assert not one.exists()
    assert (two / "hello").read_text() == "from one"


async def test_a_reader_cannot_write(driver: Driver) -> None:
    volume = await driver.create("readers", 64 * MIB)
    target = await driver.publish(volume, "reader", readonly=True)
    with pytest.raises(OSError, match="Read-only"):
        (target / "x").write_text("x")


@pytest.mark.parametrize("kind", [FILES, BLOCK])
async def test_a_volume_for_one_pod_is_at_one_place(driver: Driver, kind: csi.VolumeCapability) -> None:
    alone = csi.VolumeCapability()
    alone.CopyFrom(kind)
    alone.access_mode.mode = Mode.SINGLE_NODE_SINGLE_WRITER
    volume = await driver.create("alone", 32 * MIB, alone)
    target = await driver.publish(volume, "alone", alone)
    assert await driver.publish(volume, "alone", alone) == target
    second = csi.NodePublishVolumeRequest(
        volume_id=volume, target_path=str(target.with_name("second")), volume_capability=alone
    )
    assert await driver.refused(second) is grpc.StatusCode.FAILED_PRECONDITION
    await driver.unpublish(volume, target)
    await driver.publish(volume, "second", alone)


async def test_a_volume_holds_what_was_asked_for_and_more_after_it_grew(driver: Driver) -> None:
    volume = await driver.create("bounded", 64 * MIB)
    target = await driver.publish(volume, "bounded")
    written = fill(target / "one", 200 * MIB)
    assert 64 * MIB <= written < 90 * MIB
    await driver.grow(volume, 160 * MIB)
    assert 80 * MIB <= fill(target / "two", 200 * MIB) < 130 * MIB
    os.sync()
    usage = (await driver(csi.NodeGetVolumeStatsRequest(volume_id=volume, volume_path=str(target)))).usage[0]
    assert usage.total == 160 * MIB
    assert 140 * MIB <= usage.used <= 160 * MIB


async def test_a_snapshot_keeps_its_moment_and_costs_nothing(driver: Driver, pool: Path) -> None:
    volume = await driver.create("origin", 128 * MIB)
    target = await driver.publish(volume, "origin")
    fill(target / "data", 64 * MIB)
    (target / "state").write_text("then")
    os.sync()
    before = os.statvfs(pool)
    snapshot = await driver.snapshot(volume, "moment")
    (target / "state").write_text("now")
    restored = await driver.create("restored", 128 * MIB, volume_content_source=from_snapshot(snapshot))
    copy = await driver.publish(restored, "restored")
    assert (copy / "state").read_text() == "then"
    assert (copy / "data").read_bytes() == (target / "data").read_bytes()
    os.sync()
    after = os.statvfs(pool)
    assert (before.f_bfree - after.f_bfree) * after.f_frsize < 8 * MIB
    (copy / "state").write_text("changed")
    assert (target / "state").read_text() == "now"


async def test_a_clone_is_of_its_own_and_outlives_its_source(driver: Driver) -> None:
    volume = await driver.create("parent", 64 * MIB)
    target = await driver.publish(volume, "parent")
    (target / "x").write_text("inherited")
    clone = await driver.create("child", 128 * MIB, volume_content_source=from_volume(volume))
    await driver.unpublish(volume, target)
    await driver(csi.DeleteVolumeRequest(volume_id=volume))
    copy = await driver.publish(clone, "child")
    assert (copy / "x").read_text() == "inherited"
    assert 64 * MIB < fill(copy / "more", 300 * MIB) < 180 * MIB


async def test_a_block_volume_is_one_device_for_all_who_have_it(driver: Driver, pool: Path) -> None:
    volume = await driver.create("disk", 64 * MIB, BLOCK)
    one = await driver.publish(volume, "disk-one", BLOCK)
    two = await driver.publish(volume, "disk-two", BLOCK)
    assert stat.S_ISBLK(one.stat().st_mode)
    assert one.stat().st_rdev == two.stat().st_rdev
    with one.open("r+b") as device:
        assert device.seek(0, os.SEEK_END) == 64 * MIB
        device.seek(0)
        device.write(b"block" * 100)
        device.flush()
        os.fsync(device.fileno())
    await driver.grow(volume, 96 * MIB)
    with two.open("rb") as device:
        assert device.read(5) == b"block"
        assert device.seek(0, os.SEEK_END) == 96 * MIB
    await driver.unpublish(volume, one)
    assert loop.of_file(disk_of(pool, volume)) is not None
    await driver.unpublish(volume, two)
    assert loop.of_file(disk_of(pool, volume)) is None


def disk_of(pool: Path, volume: str) -> Path:
    return pool / "csi" / "volumes" / volume / "disk"


async def test_a_block_volume_can_be_restored_larger(driver: Driver) -> None:
    volume = await driver.create("small-disk", 32 * MIB, BLOCK)
    target = await driver.publish(volume, "small-disk", BLOCK)
    with target.open("r+b") as device:
        device.write(b"kept")
        device.flush()
        os.fsync(device.fileno())
    snapshot = await driver.snapshot(volume, "of-a-disk")
    with target.open("r+b") as device:
        device.write(b"lost")
        device.flush()
        os.fsync(device.fileno())
    larger = await driver.create("big-disk", 64 * MIB, BLOCK, volume_content_source=from_snapshot(snapshot))
    copy = await driver.publish(larger, "big-disk", BLOCK)
    with copy.open("rb") as device:
        assert device.read(4) == b"kept"
        assert device.seek(0, os.SEEK_END) == 64 * MIB


async def test_a_request_that_comes_again_changes_nothing(driver: Driver) -> None:
    volume = await driver.create("again", 64 * MIB)
    assert await driver.create("again", 64 * MIB) == volume
    target = await driver.publish(volume, "again")
    (target / "x").write_text("x")
    assert await driver.create("again", 64 * MIB) == volume
    assert await driver.publish(volume, "again") == target
    assert len([item for item in mounts.mounted() if item.point == target]) == 1
    snapshot = await driver.snapshot(volume, "again")
    (target / "x").write_text("y")
    assert await driver.snapshot(volume, "again") == snapshot
    await driver.unpublish(volume, target)
    await driver.unpublish(volume, target)
    for _ in range(2):
        await driver(csi.DeleteSnapshotRequest(snapshot_id=snapshot))
        await driver(csi.DeleteVolumeRequest(volume_id=volume))


async def test_a_name_that_means_something_else_is_refused(driver: Driver) -> None:
    volume = await driver.create("taken", 64 * MIB)
    other = await driver.create("other", 64 * MIB)
    await driver.snapshot(volume, "taken")
    capacity = csi.CapacityRange(required_bytes=128 * MIB)
    asked = (
        csi.CreateVolumeRequest(name="taken", capacity_range=capacity, volume_capabilities=[FILES]),
        csi.CreateVolumeRequest(name="taken", volume_capabilities=[BLOCK]),
        csi.CreateVolumeRequest(name="taken", volume_capabilities=[FILES], volume_content_source=from_volume(other)),
        csi.CreateSnapshotRequest(name="taken", source_volume_id=other),
    )
    for request in asked:
        assert await driver.refused(request) is grpc.StatusCode.ALREADY_EXISTS


async def test_what_cannot_be_is_refused_with_the_right_code(driver: Driver) -> None:
    volume = await driver.create("checked", 64 * MIB)
    snapshot = await driver.snapshot(volume, "checked")
    target = await driver.publish(volume, "checked")
    code = grpc.StatusCode
    too_big = csi.CapacityRange(required_bytes=SIZE * 4)
    narrow = csi.CapacityRange(required_bytes=5000, limit_bytes=6000)
    less = csi.CapacityRange(required_bytes=32 * MIB)
    ext4 = csi.VolumeCapability(
        mount=csi.VolumeCapability.MountVolume(fs_type="ext4"), access_mode=Mode(mode=Mode.SINGLE_NODE_WRITER)
    )
    odd = csi.VolumeCapability(
        mount=csi.VolumeCapability.MountVolume(mount_flags=["dax"]), access_mode=Mode(mode=Mode.SINGLE_NODE_WRITER)
    )
    wrong = (
        (csi.CreateVolumeRequest(name="n", volume_capabilities=[FILES], capacity_range=too_big), code.OUT_OF_RANGE),
        (csi.CreateVolumeRequest(name="n", volume_capabilities=[FILES], capacity_range=narrow), code.OUT_OF_RANGE),
        (csi.CreateVolumeRequest(name="n", volume_capabilities=[ext4]), code.INVALID_ARGUMENT),
        (
            csi.CreateVolumeRequest(name="n", volume_capabilities=[FILES], parameters={"speed": "high"}),
            code.INVALID_ARGUMENT,
        ),
        (
            csi.CreateVolumeRequest(
                name="n",
                volume_capabilities=[FILES],
                capacity_range=less,
                volume_content_source=from_snapshot(snapshot),
            ),
            code.OUT_OF_RANGE,
        ),
        (
            csi.CreateVolumeRequest(
                name="n", volume_capabilities=[BLOCK], volume_content_source=from_snapshot(snapshot)
            ),
            code.INVALID_ARGUMENT,
        ),
        (
            csi.CreateVolumeRequest(name="n", volume_capabilities=[FILES], volume_content_source=from_volume("../x")),
            code.NOT_FOUND,
        ),
        (csi.DeleteVolumeRequest(volume_id=volume), code.FAILED_PRECONDITION),
        (csi.ListVolumesRequest(starting_token="odd"), code.ABORTED),
        (
            csi.NodePublishVolumeRequest(volume_id=volume, target_path=str(target), volume_capability=odd),
            code.INVALID_ARGUMENT,
        ),
        (
            csi.NodePublishVolumeRequest(volume_id=volume, target_path=str(target), volume_capability=BLOCK),
            code.INVALID_ARGUMENT,
        ),
    )
    for request, expected in wrong:
        assert await driver.refused(request) is expected, request
    assert len((await driver(csi.ListVolumesRequest())).entries) == 1


async def test_lists_come_in_pages(driver: Driver) -> None:
    made = {await driver.create(f"listed-{number}", 8 * MIB) for number in range(5)}
    seen: list[str] = []
    token = ""
    while True:
        answer = await driver(csi.ListVolumesRequest(max_entries=2, starting_token=token))
        seen += [entry.volume.volume_id for entry in answer.entries]
        if not (token := answer.next_token):
            break
    assert len(seen) == 5
    assert set(seen) == made


async def test_what_a_killed_driver_left_half_made_is_made_anew(driver: Driver, pool: Path) -> None:
    volume = await driver.create("half", 64 * MIB)
    await driver(csi.DeleteVolumeRequest(volume_id=volume))
    tree = pool / "csi" / "volumes" / volume
    btrfs.create(tree)
    (tree / "rubbish").write_text("x")
    assert await driver.create("half", 64 * MIB) == volume
    assert list(tree.iterdir()) == []


async def test_subvolumes_that_a_tenant_made_inside_go_with_the_volume(driver: Driver) -> None:
    volume = await driver.create("nested", 64 * MIB)
    target = await driver.publish(volume, "nested")
    (target / "folder").mkdir()
    btrfs.create(target / "folder" / "inner")
    (target / "folder" / "inner" / "x").write_text("x")
    await driver.unpublish(volume, target)
    await driver(csi.DeleteVolumeRequest(volume_id=volume))
    assert volume not in [entry.volume.volume_id for entry in (await driver(csi.ListVolumesRequest())).entries]


async def test_devices_of_a_node_that_is_gone_are_freed_by_their_label(driver: Driver, pool: Path) -> None:
    volume = await driver.create("left", 32 * MIB, BLOCK)
    target = await driver.publish(volume, "left", BLOCK)
    opened, above = loop.attach(target, stay=True)  # as the kubelet does to keep the device
    os.close(opened)
    assert [item.path for item in loop.in_use() if item.over == target.stat().st_rdev] == [above]
    loop.detach_labelled(loop_label(NODE))
    assert loop.of_file(disk_of(pool, volume)) is None
    assert above not in [item.path for item in loop.in_use()]
