"""Reading what a program says about the libraries it needs (ELF's dynamic section)."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = b"\x7fELF"
_CLASS_64, _LITTLE_ENDIAN = 2, 1
_PROGRAM, _SHARED = 2, 3
_LOAD, _DYNAMIC, _INTERP = 1, 2, 3
_NEEDED, _STRTAB, _SONAME, _RPATH, _RUNPATH = 1, 5, 14, 15, 29
_VERNEED, _VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF

Data = bytes | mmap.mmap


@dataclass(frozen=True)
class Elf:
    """`search` are the folders written into the file, `interpreter` the loader that starts it (programs only)."""

    needed: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    soname: str = ""
    interpreter: str = ""
    glibc: tuple[int, ...] = ()
    """The oldest version of the C library that has every symbol it uses; empty when it uses none."""


def read_elf(data: Data) -> Elf | None:
    """None for anything but a program or library for a 64-bit little-endian machine. ValueError: cut off."""
    if data[:4] != MAGIC:
        return None
    try:
        if (data[4], data[5]) != (_CLASS_64, _LITTLE_ENDIAN):
            return None
        (kind,) = struct.unpack_from("<H", data, 16)
        return _read(data) if kind in (_PROGRAM, _SHARED) else None
    except (struct.error, IndexError) as error:
        raise ValueError("it is cut off") from error


def _read(data: Data) -> Elf:
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    loaded: list[tuple[int, int, int]] = []
    dynamic: dict[int, list[int]] = {}
    interpreter = ""
    for index in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, table + index * size)
        if kind == _LOAD:
            loaded.append((address, length, offset))
        elif kind == _DYNAMIC:
            dynamic = _entries(data, offset, length)
        elif kind == _INTERP:
            interpreter = data[offset : offset + length].rstrip(b"\0").decode(errors="replace")
    if not dynamic:
        return Elf(interpreter=interpreter)
    strings = _in_file(loaded, dynamic[_STRTAB][0])

    def texts(tag: int) -> list[str]:
        return [_text(data, strings + position) for position in dynamic.get(tag, ())]

    search = texts(_RUNPATH) or texts(_RPATH)
    return Elf(
        needed=tuple(texts(_NEEDED)),
        search=tuple(folder for value in search for folder in value.split(":") if folder),
        soname="".join(texts(_SONAME)),
        interpreter=interpreter,
        glibc=_glibc(data, loaded, dynamic, strings),
    )


def _entries(data: Data, offset: int, length: int) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for place in range(offset, offset + length, 16):
        tag, value = struct.unpack_from("<QQ", data, place)
        if tag == 0:
            break
        found.setdefault(tag, []).append(value)
    return found


def _in_file(loaded: list[tuple[int, int, int]], address: int) -> int:
    for start, length, offset in loaded:
        if start <= address < start + length:
            return offset + address - start
    raise ValueError("its tables are outside of the file")


def _text(data: Data, offset: int) -> str:
    end = data.find(b"\0", offset)
    if end < 0:
        raise ValueError("it is cut off")
    return data[offset:end].decode(errors="replace")


def _glibc(
    data: Data, loaded: list[tuple[int, int, int]], dynamic: dict[int, list[int]], strings: int
) -> tuple[int, ...]:
    versions = [()] if _VERNEED not in dynamic else list(_versions(data, loaded, dynamic, strings))
    return max(versions, default=())


def _versions(
    data: Data, loaded: list[tuple[int, int, int]], dynamic: dict[int, list[int]], strings: int
) -> Iterator[tuple[int, ...]]:
    library = _in_file(loaded, dynamic[_VERNEED][0])
    for _ in range(dynamic[_VERNEEDNUM][0]):
        _, count, _, first, after = struct.unpack_from("<HHIII", data, library)
        version = library + first
        for _ in range(count):
            _, _, _, name, step = struct.unpack_from("<IHHII", data, version)
            word = _text(data, strings + name)
            digits = word.removeprefix("GLIBC_").split(".")
            if word.startswith("GLIBC_") and all(part.isdigit() for part in digits):
                yield tuple(int(part) for part in digits)
            version += step
        library += after
