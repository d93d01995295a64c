"""A config drive is read back with nothing but the format's own rules."""

from __future__ import annotations

import json
import struct

import pytest

from hcp.ignition.configdrive import VOLUME, config_drive

SECTOR = 2048


def shown(raw: bytes) -> str:
    """A name as Linux shows it: small letters, no version, no dot at the end."""
    return raw.decode().partition(";")[0].rstrip(".").lower()


def number(data: bytes, at: int) -> int:
    """A number that is there in both byte orders, which must agree."""
    little, big = struct.unpack_from("<I", data, at)[0], struct.unpack_from(">I", data, at + 4)[0]
    assert little == big
    return int(little)


def records(image: bytes, sector: int, size: int) -> list[tuple[bytes, int, int, bool]]:
    data, found, at = image[sector * SECTOR : sector * SECTOR + size], [], 0
    while at < len(data) and data[at]:
        record = data[at : at + data[at]]
        name = record[33 : 33 + record[32]]
        found.append((name, number(record, 2), number(record, 10), bool(record[25] & 2)))
        at += data[at]
    return found


def files(image: bytes) -> dict[str, bytes]:
    """Everything below the root directory, by path."""
    volume = image[16 * SECTOR : 17 * SECTOR]
    assert volume[:6] == b"\1CD001" and image[17 * SECTOR : 17 * SECTOR + 6] == b"\xffCD001"
    assert volume[40:72].decode().rstrip() == VOLUME
    assert number(volume, 80) * SECTOR == len(image)
    result: dict[str, bytes] = {}
    open_ = [("", number(volume, 158), number(volume, 166))]
    while open_:
        path, sector, size = open_.pop()
        for name, start, length, folder in records(image, sector, size)[2:]:
            if folder:
                open_.append((f"{path}{shown(name)}/", start, length))
            else:
                result[path + shown(name)] = image[start * SECTOR : start * SECTOR + length]
    return result


@pytest.mark.parametrize("length", [0, 1, 2047, 2048, 2049, 70_000])
def test_both_files_come_back(length: int) -> None:
    found = files(config_drive("x" * length, "worker-1"))
    assert set(found) == {"openstack/latest/user_data", "openstack/latest/meta_data.json"}
    assert found["openstack/latest/user_data"] == b"x" * length
    assert json.loads(found["openstack/latest/meta_data.json"])["hostname"] == "worker-1"


def test_the_node_disk_reads_the_host_name_with_a_pattern() -> None:
    about = files(config_drive("{}", "worker-1"))["openstack/latest/meta_data.json"].decode()
    assert '"hostname": "worker-1"' in about.splitlines()[0]


def test_equal_content_is_an_equal_image() -> None:
    assert config_drive("{}", "a") == config_drive("{}", "a") != config_drive("{}", "b")


def test_path_tables_name_every_folder() -> None:
    image = config_drive("{}", "a")
    volume = image[16 * SECTOR : 17 * SECTOR]
    size = number(volume, 132)
    for order, at in (("<", 140), (">", 148)):
        sector = struct.unpack_from(f"{order}I", volume, at)[0]
        table, names = image[sector * SECTOR : sector * SECTOR + size], []
        while table:
            length, _, place, _ = struct.unpack_from(f"{order}BBIH", table)
            names.append(table[8 : 8 + length])
            assert records(image, place, SECTOR)[0][0] == b"\0"
            table = table[8 + length + length % 2 :]
        assert names == [b"\0", b"OPENSTACK", b"LATEST"]
