"""From a directory to a disk that a BIOS boots: one partition, ext4, extlinux, then a compressed qcow2."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from hcp.errors import HcpError
from hcp.payload.context import BuildContext

SECTOR = 512
PARTITION_START = 2048 * SECTOR
# The root file system as shipped; the node grows it to the size of its disk at boot.
DISK_BYTES = 2 << 30
_BOOT_CODE_BYTES = 440
_MBR = Path("/usr/lib/EXTLINUX/mbr.bin")
# extlinux reads neither 64-bit block numbers nor metadata checksums.
_EXT4 = "^64bit,^metadata_csum"
_GROW_TO = "lazy_itable_init=1,resize=67108864"  # in blocks: 256 GiB
_INSTALL = 'mount -o loop "$1" "$2" && extlinux --install "$2/boot/extlinux" && umount "$2"'


def make_disk(ctx: BuildContext, root: Path, target: Path) -> None:
    """Writes `root` as a bootable qcow2 at `target`."""
    ctx.apt("e2fsprogs", "extlinux", "qemu-utils", "mount", "util-linux")
    partition = ctx.scratch / "partition.img"
    raw = ctx.scratch / "disk.raw"
    size = DISK_BYTES - PARTITION_START
    ctx.say("making the file system")
    with partition.open("wb") as file:
        file.truncate(size)
    options = ["-q", "-F", "-L", "root", "-m", "1", "-O", _EXT4, "-J", "size=32", "-E", _GROW_TO]
    ctx.run(["mkfs.ext4", *options, "-d", root, partition])
    point = ctx.scratch / "mnt"
    point.mkdir()
    # In a mount namespace of its own: if we are killed, the mount and its loop device go with it.
    ctx.run(["unshare", "--mount", "sh", "-c", _INSTALL, "install", partition, point])
    _join(partition, raw)
    partition.unlink()
    ctx.say("compressing the disk")
    # Importers read a disk over HTTP, a request per cluster: few large ones are faster than many small ones.
    convert = ["qemu-img", "convert", "-f", "raw", "-O", "qcow2", "-c", "-m", "4", "-W"]
    ctx.run([*convert, "-o", "compression_type=zstd,compat=1.1,cluster_size=1M", raw, target])
    raw.unlink()
    pad_for_small_crc(target)


def _join(partition: Path, disk: Path) -> None:
    """Boot record and partition behind each other; holes stay holes."""
    if not _MBR.exists():
        raise HcpError(f"{_MBR} is missing", hint="install the Debian package extlinux")
    chunk = 1 << 20
    zero = bytes(chunk)
    with partition.open("rb") as source, disk.open("wb") as out:
        out.write(boot_record(_MBR.read_bytes(), DISK_BYTES))
        out.seek(PARTITION_START)
        while data := source.read(chunk):
            if data == zero:
                out.seek(len(data), 1)
            else:
                out.write(data)
        out.truncate(DISK_BYTES)


def boot_record(code: bytes, disk_bytes: int) -> bytes:
    """A master boot record with one active Linux partition from sector 2048 to the end."""
    start = PARTITION_START // SECTOR
    entry = struct.pack("<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", start, disk_bytes // SECTOR - start)
    table = entry + bytes(48)
    signature = struct.pack("<IH", 0x68637031, 0)
    return code[:_BOOT_CODE_BYTES].ljust(_BOOT_CODE_BYTES, b"\0") + signature + table + b"\x55\xaa"


def pad_for_small_crc(disk: Path) -> None:
    """Adds a sector at the end, which qcow2 ignores, such that the file's CRC32 fits into a signed 32-bit number.

    KubeVirt puts the checksum of a containerDisk into a field that is an int32, and the API server now enforces it.
    """
    crc = 0
    with disk.open("r+b") as file:
        while data := file.read(1 << 20):
            crc = zlib.crc32(data, crc)
        if crc < 1 << 31:
            return
        number = 0
        while zlib.crc32(struct.pack("<I", number).ljust(SECTOR, b"\0"), crc) >= 1 << 31:
            number += 1
        file.write(struct.pack("<I", number).ljust(SECTOR, b"\0"))
