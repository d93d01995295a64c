"""Programs and libraries for tests, made of nothing but the tables that a loader reads."""

from __future__ import annotations

import struct

_HEADER, _ENTRY = 64, 56


def elf(
    *needed: str, search: str = "", interpreter: str = "", glibc: str = "", kind: int = 3, static: bool = False
) -> bytes:
    """An ELF file that needs these libraries; `search` is its RPATH, `glibc` a version it asks libc.so.6 for."""
    strings = bytearray(b"\0")

    def put(text: str) -> int:
        place = len(strings)
        strings.extend(text.encode() + b"\0")
        return place

    tags: list[tuple[int, int]] = [(1, put(name)) for name in needed]
    if search:
        tags.append((15, put(search)))
    version, library = put(f"GLIBC_{glibc}"), put("libc.so.6")
    loader = interpreter.encode() + b"\0"
    count = 2 + bool(interpreter)
    start = _HEADER + count * _ENTRY
    versions_at = start + len(loader)
    versions = struct.pack("<HHIII", 1, 1, library, 16, 0) + struct.pack("<IHHII", 0, 0, 2, version, 0)
    strings_at = versions_at + len(versions)
    tags.append((5, strings_at))
    if glibc:
        tags += [(0x6FFFFFFE, versions_at), (0x6FFFFFFF, 1)]
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in (*tags, (0, 0)))
    dynamic_at = strings_at + len(strings)
    size = dynamic_at + len(dynamic)
    segments = [(1, 0, size), (0 if static else 2, dynamic_at, len(dynamic))]
    if interpreter:
        segments.append((3, start, len(loader)))
    head = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) + struct.pack("<HHIQQQI", kind, 62, 1, 0, _HEADER, 0, 0)
    head += struct.pack("<HHHHHH", _HEADER, _ENTRY, count, 0, 0, 0)
    table = b"".join(struct.pack("<IIQQQQQQ", which, 4, at, at, at, long, long, 1) for which, at, long in segments)
    return head + table + loader + versions + bytes(strings) + dynamic
