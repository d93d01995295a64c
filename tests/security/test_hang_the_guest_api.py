"""API servers of hosted clusters that take connections and never answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from hcp.errors import HcpError
from hcp.kube import Client, ClusterConfig
from hcp.kube import resources as k
from hcp.runtime.controller import Controller, namespace_of

GUESTS = 60


@pytest.fixture
async def silent() -> AsyncIterator[str]:
    """A server that listens to everybody and says nothing."""
    ended = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readexactly(1)
            await ended.wait()
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    ended.set()
    server.close()


async def test_the_clusters_of_other_teams_are_worked_on(silent: str, client: Client) -> None:
    begun: set[str] = set()
    worked = asyncio.Event()
    hung = Client(ClusterConfig(silent))

    async def reconcile(key: str) -> None:
        begun.add(key)
        if key.startswith("attacker/"):
            with contextlib.suppress(HcpError):
                await hung.list(k.NODES)
            return
        await client.list(k.NODES)
        worked.set()

    controller = Controller("guest", reconcile, workers=32, group=namespace_of, per_group=8)
    for number in range(GUESTS):
        controller.enqueue(f"attacker/cluster-{number}")
    running = asyncio.create_task(controller.run())
    try:
        async with asyncio.timeout(300):
            while len(begun) < 8:
                await asyncio.sleep(0.01)
            controller.enqueue("team/cluster")
            await worked.wait()
        assert sum(key.startswith("attacker/") for key in begun) == 8
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await hung.close()
