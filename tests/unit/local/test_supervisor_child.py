"""What every process of the embedded cluster is started with."""

from __future__ import annotations

import asyncio
import os

from hcp.local.supervisor.reaper import Reaper


async def _output_of(*argv: str) -> str:
    reaper = Reaper()
    reaper.install()
    reading, writing = os.pipe()
    try:
        pid = reaper.spawn(list(argv), dict(os.environ), writing)
        assert await reaper.wait(pid) == 0
        return os.read(reading, 1000).decode()
    finally:
        os.close(reading)
        os.close(writing)


def test_timers_may_be_late_in_what_it_starts_too() -> None:
    # A grandchild, as containers are.
    assert asyncio.run(_output_of("sh", "-c", "sh -c 'cat /proc/$$/timerslack_ns'; :")).split() == ["10000000"]
