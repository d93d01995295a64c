"""Ports of tests: of none that the kernel gives by itself, and each to one server only."""

from __future__ import annotations

import socket
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support import ports


@pytest.mark.parametrize(
    ("kernel", "first", "last"),
    [
        ("32768\t60999\n", ports.FIRST, ports.LAST),
        ("", ports.FIRST, ports.LAST),
        ("16000 40000", ports.FIRST, 15_999),
        ("1024 50000", 50_001, ports.LISTENING_LIMIT - 1),
    ],
)
def test_they_are_where_the_kernel_gives_none(kernel: str, first: int, last: int) -> None:
    found = ports._ours(kernel)
    assert (found[0], found[-1]) == (first, last)


def test_where_the_kernel_gives_all_it_is_asked() -> None:
    assert not ports._ours("1024 65535")
    assert ports._next(0, ports._ours("1024 65535")) > 0


def test_nobody_gets_the_same_or_one_that_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    first = ports.free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ports._next(first, ports._ours("32768 60999"))))
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda _: ports.free_port(), range(40)))
        assert len({first, taken.getsockname()[1], *found}) == 42
