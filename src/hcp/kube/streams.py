"""Bytes to and from a pod, through the API server: a forwarded port, and a program that is run in a container.

Both are websockets in which the first byte of a message names its channel.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import quote

import aiohttp

from hcp.errors import HcpError
from hcp.kube.client import Client
from hcp.kube.errors import ServerFailure, Unreachable
from hcp.kube.resources import PODS

Connection = aiohttp.ClientWebSocketResponse[bool]
FORWARD = "v4.channel.k8s.io"
# The first one in which the end of standard input can be told.
RUN = "v5.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _RESULT, _CLOSE = 0, 1, 2, 3, 255
PIECE = 64 * 1024
# Of what a program says when it fails, this much is told.
WORDS = 2000


@contextlib.asynccontextmanager
async def forwarded(client: Client, namespace: str, pod: str, port: int) -> AsyncIterator[int]:
    """A port of this machine, for this machine only, that leads to one of a pod. Gives the number."""
    path = f"{PODS.path(namespace, pod, 'portforward')}?ports={port}"
    trouble: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with client.websocket(path, FORWARD) as connection:
                await _both_ways(connection, reader, writer, trouble)
        except HcpError as exc:
            trouble.append(str(exc))
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    except (Unreachable, ServerFailure) as exc:
        if trouble:
            raise HcpError(f"port {port} of pod {namespace}/{pod} cannot be reached", cause=trouble[0]) from exc
        raise
    finally:
        server.close()


async def _both_ways(
    connection: Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, trouble: list[str]
) -> None:
    async def upwards() -> None:
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(PIECE):
                await connection.send_bytes(b"\0" + piece)

    async def downwards() -> None:
        announced = set()
        with contextlib.suppress(ConnectionError):
            async for message in connection:
                data = message.data
                if message.type is not aiohttp.WSMsgType.BINARY or not data:
                    continue
                if data[0] not in announced:  # both channels begin with the number of the port
                    announced.add(data[0])
                elif data[0] == 0:
                    writer.write(data[1:])
                    await writer.drain()
                else:
                    trouble.append(data[1:].decode("utf-8", "replace"))
                    return

    tasks = [asyncio.ensure_future(upwards()), asyncio.ensure_future(downwards())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run(
    client: Client, namespace: str, pod: str, container: str, command: Sequence[str], stdin: AsyncIterator[bytes]
) -> str:
    """Run a program in a container with this input, and give what it printed; an error when it failed."""
    words = "".join(f"&command={quote(word, safe='')}" for word in command)
    path = f"{PODS.path(namespace, pod, 'exec')}?container={container}&stdin=true&stdout=true&stderr=true{words}"
    said: dict[int, bytes] = {_STDOUT: b"", _STDERR: b"", _RESULT: b""}
    async with client.websocket(path, RUN) as connection:
        if connection.protocol != RUN:
            raise HcpError(
                "the management cluster is too old to be sent a file",
                cause=f"it does not know {RUN}, which Kubernetes has since 1.30",
            )
        feeding = asyncio.ensure_future(_feed(connection, stdin))
        try:
            async for message in connection:
                if message.type is aiohttp.WSMsgType.BINARY and message.data and message.data[0] in said:
                    channel = message.data[0]
                    said[channel] = (said[channel] + message.data[1:])[-WORDS:]
                if said[_RESULT]:
                    break
            if feeding.done():
                feeding.result()
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
    _judge(f"{command[0]} in pod {namespace}/{pod}", said)
    return said[_STDOUT].decode("utf-8", "replace")


async def _feed(connection: Connection, stdin: AsyncIterator[bytes]) -> None:
    with contextlib.suppress(ConnectionError):
        async for piece in stdin:
            for start in range(0, len(piece), PIECE):
                await connection.send_bytes(b"\0" + piece[start : start + PIECE])
        await connection.send_bytes(bytes((_CLOSE, _STDIN)))


def _judge(what: str, said: dict[int, bytes]) -> None:
    try:
        result: Any = json.loads(said[_RESULT] or b"{}")
    except ValueError:
        result = {}
    if not isinstance(result, dict) or result.get("status") != "Success":
        words = said[_STDERR].decode("utf-8", "replace").strip()
        told = str(result.get("message") or "") if isinstance(result, dict) else ""
        raise HcpError(f"{what} failed", cause=words or told or "the connection ended before it did")
