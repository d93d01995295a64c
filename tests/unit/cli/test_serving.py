"""Processes that serve until they are told to stop."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from hcp.cli.engine.serving import until_stopped
from hcp.errors import HcpError


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_work_in_good_order(number: signal.Signals) -> None:
    tidied = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), number)
            await asyncio.sleep(30)
        finally:
            tidied.append(number)

    try:
        assert await until_stopped(work()) == 0
    finally:
        for each in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(each)
    assert tidied == [number]


async def test_a_failure_of_the_work_is_not_hidden() -> None:
    async def work() -> None:
        raise HcpError("no port")

    with pytest.raises(HcpError, match="no port"):
        await until_stopped(work())
