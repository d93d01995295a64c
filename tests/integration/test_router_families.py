"""The router by both IP families: a real HAProxy that listens on them, and leads to servers by addresses of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.api_server import free_port
from tests.support.router import haproxy_binary

from hcp.router import maps
from hcp.router.config import Settings
from hcp.router.haproxy import HAProxy
from hcp.router.maps import Place, Rows
from hcp.router.tables import Tables

ADDRESSES = ("127.0.0.1", "::1")


@pytest.fixture
async def router(tmp_path: Path) -> AsyncIterator[HAProxy]:
    made = HAProxy(Settings(tmp_path, free_port(), free_port(), six=True, max_connections=500), haproxy_binary())
    await made.start()
    try:
        yield made
    finally:
        await made.close()


async def ask(address: str, port: int) -> bytes:
    """All that is answered to a request for the host `one.example`."""
    reader, writer = await asyncio.open_connection(address, port)
    writer.write(b"GET / HTTP/1.1\r\nHost: one.example\r\nConnection: close\r\n\r\n")
    said = await reader.read()
    writer.close()
    return said


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says by which address it was called, and by whom the router was."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    client = next(line.partition(": ")[2] for line in head.splitlines() if line.startswith("x-forwarded-for"))
    body = f"{writer.get_extra_info('sockname')[0]} for {client}".encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
    await writer.drain()
    writer.close()


@pytest.mark.parametrize("called", ADDRESSES)
@pytest.mark.parametrize("pod", ADDRESSES)
async def test_either_family_leads_to_pods_of_either(router: HAProxy, called: str, pod: str) -> None:
    server = await asyncio.start_server(talk, pod, 0)
    port = server.sockets[0].getsockname()[1]
    rows, tables = Rows(), Tables()
    rows.add_web(maps.HTTP, Place("one.example", ""), [f"{pod}@{port}"])
    tables.put("one", rows)
    assert not (await router.push(tables)).refused
    said = await ask(called, router.settings.http_port)
    # A client of IPv4 is shown as such: its socket is none of both families.
    assert said.endswith(f"{pod} for {called}".encode())
    server.close()
