"""The pieces of a boot disk that are bytes: boot record, initramfs, checksum."""

from __future__ import annotations

import gzip
import struct
import subprocess
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hcp.payload.disk_initrd import Cpio, build_initrd, module_name, module_order
from hcp.payload.disk_raw import PARTITION_START, SECTOR, boot_record, pad_for_small_crc
from hcp.payload.disk_root import _taken, finish_root
from hcp.payload.versions import recipe_dir

DEPENDENCIES = """\
kernel/fs/ext4/ext4.ko: kernel/lib/crc16.ko kernel/fs/mbcache.ko kernel/fs/jbd2/jbd2.ko
kernel/lib/crc16.ko:
kernel/fs/mbcache.ko:
kernel/fs/jbd2/jbd2.ko:
kernel/drivers/block/virtio_blk.ko: kernel/drivers/virtio/virtio_ring.ko kernel/drivers/virtio/virtio.ko
kernel/drivers/virtio/virtio_ring.ko: kernel/drivers/virtio/virtio.ko
kernel/drivers/virtio/virtio.ko:
kernel/crypto/crc32c-intel.ko:
"""


def test_boot_record_has_one_active_partition_to_the_end() -> None:
    record = boot_record(b"code", 2 << 30)
    assert len(record) == SECTOR
    assert record[510:] == b"\x55\xaa"
    active, kind, start, sectors = struct.unpack("<B3xB3xII", record[446:462])
    assert (active, kind) == (0x80, 0x83)
    assert start * SECTOR == PARTITION_START
    assert (start + sectors) * SECTOR == 2 << 30


def test_modules_load_after_what_they_need() -> None:
    order = [module_name(path) for path in module_order(DEPENDENCIES, ["virtio_blk", "ext4"])]
    assert order == ["virtio", "virtio_ring", "virtio_blk", "jbd2", "mbcache", "crc16", "ext4"]


def test_a_built_in_module_needs_no_loading() -> None:
    assert module_order(DEPENDENCIES, ["sd_mod"]) == []


def test_names_with_dashes_are_found() -> None:
    assert module_order(DEPENDENCIES, ["crc32c_intel"]) == ["kernel/crypto/crc32c-intel.ko"]


def test_the_archive_is_what_cpio_reads(tmp_path: Path) -> None:
    archive = Cpio()
    archive.directory("dev")
    archive.file("init", b"#!", 0o755)
    data = archive.finish()
    assert data.startswith(b"070701")
    assert len(data) % 4 == 0
    assert data[110 : 110 + 4] == b"dev\0"


def test_initramfs_lists_its_modules(tmp_path: Path) -> None:
    (tmp_path / "modules.dep").write_text("kernel/ext4.ko:\n")
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "ext4.ko").write_bytes(b"module")
    (tmp_path / "init").write_bytes(b"init")
    data = gzip.decompress(build_initrd(tmp_path / "init", tmp_path))
    assert b"lib/ext4.ko\0" in data
    assert b"/lib/ext4.ko\n" in data


@settings(deadline=None)
@given(st.binary(max_size=2000))
def test_checksum_fits_a_signed_number(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    disk = tmp_path_factory.mktemp("disk") / "disk"
    disk.write_bytes(content)
    pad_for_small_crc(disk)
    padded = disk.read_bytes()
    assert zlib.crc32(padded) < 1 << 31
    assert padded.startswith(content)
    assert len(padded) - len(content) in (0, SECTOR)


def test_of_the_kernel_package_only_kernel_and_modules_are_kept() -> None:
    assert _taken("boot/vmlinuz-6.1.0-1-cloud-amd64")
    assert _taken("lib/modules/6.1/kernel/fs/ext4/ext4.ko")
    assert not _taken("lib/modules/6.1/kernel/sound/core/snd.ko")
    assert not _taken("etc/initramfs-tools/initramfs.conf")


def test_nodes_make_mend_and_grow_xfs_and_carry_nothing_else_of_its_package() -> None:
    assert _taken("lib/modules/6.1/kernel/fs/xfs/xfs.ko")
    assert _taken("sbin/mkfs.xfs") and _taken("sbin/xfs_repair") and _taken("usr/sbin/xfs_growfs")
    assert _taken("usr/lib/x86_64-linux-gnu/liburcu.so.8.1.0")
    assert not _taken("usr/sbin/xfs_scrub") and not _taken("usr/lib/x86_64-linux-gnu/libicudata.so.72")


def test_the_finished_root_has_our_units_and_no_identity(tmp_path: Path) -> None:
    (tmp_path / "etc" / "systemd").mkdir(parents=True)
    finish_root(tmp_path, recipe_dir("node-disk") / "root")
    units = tmp_path / "etc" / "systemd" / "system"
    assert (units / "multi-user.target.wants" / "hcp-firstboot.service").is_symlink()
    assert str((units / "getty@tty1.service").readlink()) == "/dev/null"
    assert (tmp_path / "etc" / "machine-id").read_text() == ""
    assert (tmp_path / "usr" / "lib" / "hcp" / "firstboot").stat().st_mode & 0o111
    assert (tmp_path / "etc" / "containerd" / "certs.d").is_dir()


def test_the_first_boot_starts_what_was_brought_for_targets_that_are_reached_already() -> None:
    """A timer, a socket or a mount of the configuration: its own target is named, and before that of services."""
    script = (recipe_dir("node-disk") / "root/usr/lib/hcp/firstboot").read_text().replace("\\\n", "")
    [line] = [one.split() for one in script.splitlines() if one.startswith("systemctl --no-block start ")]
    assert {"local-fs.target", "sockets.target", "paths.target", "timers.target"} < set(line)
    assert line[-1] == "multi-user.target"


def test_the_host_name_comes_from_what_kubevirt_writes() -> None:
    script = (recipe_dir("node-disk") / "root/usr/lib/hcp/hostname").read_text()
    expression = script.split("name=$(sed -n '")[1].split("'")[0]
    document = '{"instance_type":"u1","instance_id":"pool-x7","hostname":"pool-x7","uuid":"1","public_keys":{}}'
    done = subprocess.run(["sed", "-n", expression], input=document, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "pool-x7"
