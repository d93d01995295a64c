"""Ports for the servers of tests, which nobody else takes between choosing and listening.

A port that the kernel gives, and that is closed again, may be given to whoever asks next: to the other end of any
connection, or to a test beside this one. So they come from below the range that the kernel gives from, and all tests of
this machine go through them together, one after the other.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

KERNEL = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Above what is well known, below node ports.
FIRST, LAST = 12_000, 29_999
# With fewer, tests that run long would meet their own ports again.
ENOUGH = 2_000
LISTENING_LIMIT = 65_000


def free_port() -> int:
    with (Path(tempfile.gettempdir()) / f"hcp-test-ports-{os.getuid()}").open("a+") as shared:
        fcntl.flock(shared, fcntl.LOCK_EX)
        shared.seek(0)
        before = shared.read().strip()
        ours = _ours(KERNEL.read_text() if KERNEL.exists() else "")
        # Who has another folder for what is temporary, as a clean room has, begins elsewhere on the same network.
        found = _next(int(before) if before.isdigit() else random.choice(ours or [0]), ours)
        shared.truncate(0)
        shared.write(str(found))
        return found


def _ours(kernel: str) -> range:
    """Where the kernel gives none of its own accord; empty when it leaves no room."""
    low, high = (int(word) for word in (kernel.split() or ("32768", "60999"))[:2])
    below, above = range(FIRST, min(low, LAST + 1)), range(max(high + 1, FIRST), LISTENING_LIMIT)
    return next((one for one in (below, above) if len(one) >= ENOUGH), range(0))


def _next(before: int, ours: range) -> int:
    start = ours.index(before) + 1 if before in ours else 0
    order: list[int] = [*ours[start:], *ours[:start]]
    for number in order:
        if _is_free(number):
            return number
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _is_free(port: int) -> bool:
    """On all addresses: some servers of tests listen on more than the loopback."""
    with socket.socket() as sock:
        try:
            sock.bind(("", port))
        except OSError:
            return False
    return True
