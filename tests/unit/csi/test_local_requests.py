"""What the embedded cluster's driver understands of requests, and what it keeps of volumes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.csi.errors import CsiError, InvalidArgument, OutOfRange
from hcp.csi.local import publishing, requests
from hcp.csi.local.pool import page
from hcp.csi.local.records import Records, Volume, is_id, snapshot_id, volume_id
from hcp.csi.wire import csi_pb2 as csi
from hcp.errors import HcpError
from hcp.linux import mounts
from hcp.linux.syscalls import MS_NOEXEC, MS_RDONLY

Mode = csi.VolumeCapability.AccessMode
WRITER = Mode(mode=Mode.SINGLE_NODE_WRITER)
FILES = csi.VolumeCapability(mount=csi.VolumeCapability.MountVolume(), access_mode=WRITER)
BLOCK = csi.VolumeCapability(block=csi.VolumeCapability.BlockVolume(), access_mode=WRITER)


@given(st.integers(0, 1 << 50), st.integers(0, 1 << 50), st.integers(0, 1 << 40))
def test_a_size_is_at_least_what_is_asked_and_never_more_than_allowed(asked: int, most: int, source: int) -> None:
    try:
        size = requests.size_of(csi.CapacityRange(required_bytes=asked, limit_bytes=most), source)
    except CsiError as error:
        assert isinstance(error, OutOfRange)
        return
    assert size >= max(asked, source)
    assert not most or size <= most
    assert asked == 0 or size - asked < 4096


def test_a_size_that_nobody_said_is_that_of_the_source_or_a_usual_one() -> None:
    assert requests.size_of(None) == requests.DEFAULT_SIZE
    assert requests.size_of(None, 8 << 30) == 8 << 30
    assert requests.size_of(csi.CapacityRange(limit_bytes=1 << 20)) == 1 << 20


@pytest.mark.parametrize(
    "capabilities",
    [
        [],
        [FILES, BLOCK],
        [csi.VolumeCapability(access_mode=WRITER)],
        [csi.VolumeCapability(mount=csi.VolumeCapability.MountVolume())],
        [csi.VolumeCapability(mount=csi.VolumeCapability.MountVolume(fs_type="ext4"), access_mode=WRITER)],
    ],
)
def test_a_use_that_cannot_be_is_refused(capabilities: list[csi.VolumeCapability]) -> None:
    with pytest.raises(InvalidArgument):
        requests.is_block(capabilities)


def test_the_kind_of_a_volume_is_that_of_its_use() -> None:
    assert requests.is_block([BLOCK, BLOCK])
    assert not requests.is_block([FILES])


def test_what_the_provisioner_adds_is_no_unknown_parameter() -> None:
    requests.check_parameters({"csi.storage.k8s.io/pvc/name": "x"})
    with pytest.raises(InvalidArgument, match="speed"):
        requests.check_parameters({"csi.storage.k8s.io/pvc/name": "x", "speed": "high"})


def test_mount_options() -> None:
    assert publishing.flags_of(["rw", "noexec"], read_only=True) == MS_RDONLY | MS_NOEXEC
    with pytest.raises(InvalidArgument, match="dax"):
        publishing.flags_of(["dax"], read_only=False)


@given(st.text(max_size=300))
def test_every_name_gives_an_id_that_is_safe_in_a_path(name: str) -> None:
    assert is_id(volume_id(name))
    assert is_id(snapshot_id(name))
    assert volume_id(name) == volume_id(name)


@pytest.mark.parametrize("key", ["", "..", "../x", "vol-", "vol-" + "0" * 31 + "/", "VOL-" + "0" * 32])
def test_what_is_no_id_of_ours_finds_nothing(tmp_path: Path, key: str) -> None:
    (tmp_path / "x.json").write_text("{}")
    assert Records(tmp_path / "records", Volume).get(key) is None


def test_records_are_kept_and_a_broken_one_is_named(tmp_path: Path) -> None:
    records = Records(tmp_path / "records", Volume)
    volume = Volume(volume_id("a"), "a", 4096, block=True, snapshot="snap-1")
    assert records.all() == []
    records.put(volume)
    assert records.get(volume.id) == volume
    assert records.all() == [volume]
    (tmp_path / "records" / f"{volume.id}.json").write_text("{")
    with pytest.raises(HcpError, match=volume.id):
        records.get(volume.id)
    records.remove(volume.id)
    records.remove(volume.id)
    assert records.all() == []


@given(st.integers(0, 12), st.integers(1, 5))
def test_pages_hold_everything_once(count: int, most: int) -> None:
    volumes = sorted((Volume(volume_id(str(n)), str(n), 1, False) for n in range(count)), key=lambda v: v.id)
    seen: list[Volume] = []
    token = ""
    while True:
        shown, token = page(volumes, token, most)
        assert len(shown) <= most
        seen += shown
        if not token:
            break
    assert seen == volumes


def test_the_kernels_table_of_mounts_is_read() -> None:
    text = (
        "29 23 0:26 /csi/volumes/vol-1 /pods/with\\040space rw,nosuid,noatime shared:5 - btrfs /dev/loop0 rw\n"
        "30 23 0:6 /loop3 /pods/disk ro - devtmpfs udev rw\n"
    )
    one, two = mounts.parse(text)
    assert (one.root, one.point, one.kind, one.source) == (
        "/csi/volumes/vol-1",
        Path("/pods/with space"),
        "btrfs",
        "/dev/loop0",
    )
    assert one.options == {"rw", "nosuid", "noatime"}
    assert (two.root, two.kind) == ("/loop3", "devtmpfs")
