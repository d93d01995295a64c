"""A config drive as an image file: what a hypervisor gives a VM, for machines that nobody here makes.

A CD-ROM image (ISO 9660) with the volume id `config-2`, by which Ignition and the node disk find it, and two files
below `openstack/latest`: `user_data`, the pointer to the node document, and `meta_data.json` with the host name. Plain
ISO 9660 has names in capitals; Linux shows them in small letters, without the version after the semicolon.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field

VOLUME = "config-2"
_SECTOR = 2048
_SYSTEM_AREA = 16
# Everything is as old as the standard lets it be: equal content gives equal images.
_NEVER = bytes(7)
_NO_DATE = b"0" * 16 + b"\0"


def config_drive(user_data: str, hostname: str) -> bytes:
    """The image for one machine."""
    about = json.dumps({"hostname": hostname, "name": hostname, "uuid": hostname}) + "\n"
    latest = _Folder("LATEST", files=[("META_DATA.JSON;1", about.encode()), ("USER_DATA.;1", user_data.encode())])
    return _image(_Folder("", folders=[_Folder("OPENSTACK", folders=[latest])]))


@dataclass
class _Folder:
    """A directory, with the place it got."""

    name: str
    folders: list[_Folder] = field(default_factory=list)
    files: list[tuple[str, bytes]] = field(default_factory=list)
    sector: int = 0


def _image(root: _Folder) -> bytes:
    """Descriptors, path tables, directories, files, each on sectors of its own; no directory outgrows one."""
    folders = [root]
    for folder in folders:
        folders += folder.folders
    first = _SYSTEM_AREA + 4
    for number, folder in enumerate(folders):
        folder.sector = first + number
    parents = {id(child): folder for folder in folders for child in folder.folders}
    place, files = first + len(folders), b""
    entries: dict[int, bytes] = {}
    for folder in folders:
        above = parents.get(id(folder), folder)
        records = _record(b"\0", folder.sector, _SECTOR, 2) + _record(b"\1", above.sector, _SECTOR, 2)
        found = [(child.name, _record(child.name.encode(), child.sector, _SECTOR, 2)) for child in folder.folders]
        for name, content in folder.files:
            found.append((name, _record(name.encode(), place, len(content), 0)))
            padded = _padded(content)
            files, place = files + padded, place + len(padded) // _SECTOR
        entries[id(folder)] = _padded(records + b"".join(record for _, record in sorted(found)))
    tables = [_path_table(folders, parents, order) for order in ("<", ">")]
    volume = _descriptor(root, place, len(tables[0]))
    parts = [bytes(_SYSTEM_AREA * _SECTOR), volume, _padded(b"\xffCD001\1"), *map(_padded, tables)]
    return b"".join([*parts, *(entries[id(folder)] for folder in folders), files])


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _SECTOR) if data else bytes(_SECTOR)


def _both(number: int, size: int) -> bytes:
    """A number in both byte orders, as nearly every number of the format is."""
    return number.to_bytes(size, "little") + number.to_bytes(size, "big")


def _record(name: bytes, sector: int, size: int, flags: int) -> bytes:
    """One entry of a directory."""
    body = b"\0" + _both(sector, 4) + _both(size, 4) + _NEVER + bytes([flags, 0, 0]) + _both(1, 2)
    body += bytes([len(name)]) + name
    body += bytes((len(body) + 1) % 2)
    return bytes([len(body) + 1]) + body


def _path_table(folders: list[_Folder], parents: dict[int, _Folder], order: str) -> bytes:
    numbers = {id(folder): number for number, folder in enumerate(folders, 1)}
    table = b""
    for folder in folders:
        name = folder.name.encode() or b"\0"
        above = numbers[id(parents.get(id(folder), folder))]
        table += struct.pack(f"{order}BBIH", len(name), 0, folder.sector, above) + name + bytes(len(name) % 2)
    return table


def _descriptor(root: _Folder, sectors: int, table: int) -> bytes:
    """The primary volume descriptor."""
    text = b"\1CD001\1\0" + b" " * 32 + VOLUME.encode().ljust(32) + bytes(8) + _both(sectors, 4) + bytes(32)
    text += _both(1, 2) + _both(1, 2) + _both(_SECTOR, 2) + _both(table, 4)
    text += struct.pack("<II", _SYSTEM_AREA + 2, 0) + struct.pack(">II", _SYSTEM_AREA + 3, 0)
    text += _record(b"\0", root.sector, _SECTOR, 2)
    text += b" " * (128 * 4 + 37 * 3) + _NO_DATE * 4 + b"\1\0"
    return _padded(text)
