"""Retries, broken connections and streams, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.kube import Client, ClusterConfig, transport, watching
from hcp.kube.errors import Call, Gone, ServerFailure, TooManyRequests, Unreachable
from hcp.kube.resources import CONFIGMAPS, PODS

Answer = bytes | None
Script = Callable[[str, int], Answer]


def answer(status: int, body: object, *headers: str) -> bytes:
    raw = json.dumps(body).encode()
    head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(raw)}", "Content-Type: application/json", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + raw


@contextlib.asynccontextmanager
async def server(script: Script) -> AsyncIterator[tuple[Client, list[str]]]:
    """A socket that answers the n-th request as the script says; None cuts the connection."""
    seen: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    (int(x.split(":")[1]) for x in head.split("\r\n") if x.lower().startswith("content-length")), 0
                )
                await reader.readexactly(length)
                seen.append(head.split(" ")[0])
                reply = script(head, len(seen))
                if reply is None:
                    writer.transport.abort()
                    return
                writer.write(reply)
                await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with Client(ClusterConfig(f"http://127.0.0.1:{port}")) as client:
        yield client, seen
    listener.close()
    await listener.wait_closed()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Remember the pauses instead of making them."""
    made: list[float] = []

    async def no_sleep(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", no_sleep)
    return made


async def test_429_waits_as_long_as_the_server_asks_even_for_a_create(waits: list[float]) -> None:
    def script(_: str, n: int) -> Answer:
        return answer(429, {"reason": "TooManyRequests"}, "Retry-After: 7") if n < 3 else answer(201, {"kind": "Pod"})

    async with server(script) as (client, seen):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}
        assert await client.create(pod) == {"kind": "Pod"}
    assert seen == ["POST"] * 3
    assert len(waits) == 2
    assert all(7.0 <= wait <= 14.0 for wait in waits)


async def test_429_without_end_becomes_an_error(waits: list[float]) -> None:
    async with server(lambda _h, _n: answer(429, {}, "Retry-After: 1")) as (client, seen):
        with pytest.raises(TooManyRequests):
            await client.get(PODS, "p", "n")
    assert len(seen) == len(waits) + 1
    assert sum(waits) >= transport.BUSY_PATIENCE


async def test_a_reset_is_tried_again_for_reads_and_applies_but_not_for_creates(waits: list[float]) -> None:
    def script(_: str, n: int) -> Answer:
        return None if n == 1 else answer(200, {"ok": True})

    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}}
    calls: list[Callable[[Client], Awaitable[object]]] = [
        lambda c: c.get(CONFIGMAPS, "c", "n"),
        lambda c: c.apply(obj),
        lambda c: c.patch(CONFIGMAPS, "c", "n", {}),
        lambda c: c.delete(CONFIGMAPS, "c", "n"),
        lambda c: c.replace(obj),
    ]
    for call in calls:
        async with server(script) as (client, seen):
            assert await call(client) == {"ok": True}
            assert len(seen) == 2
    once: list[Callable[[Client], Awaitable[object]]] = [
        lambda c: c.create(obj),
        lambda c: c.patch(CONFIGMAPS, "c", "n", [], kind="json"),
    ]
    for call in once:
        async with server(script) as (client, seen):
            with pytest.raises(Unreachable):
                await call(client)
            assert len(seen) == 1


async def test_5xx_is_tried_again_only_when_the_server_says_when(waits: list[float]) -> None:
    def script(_: str, n: int) -> Answer:
        return answer(503, {}, "Retry-After: 1") if n == 1 else answer(500, {"message": "broken"})

    async with server(script) as (client, seen):
        with pytest.raises(ServerFailure, match="broken"):
            await client.get(PODS, "p", "n")
    assert len(seen) == 2
    assert len(waits) == 1


async def test_an_error_event_in_a_watch_is_raised_as_what_it_says() -> None:
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    added = {"type": "ADDED", "object": {"metadata": {"name": "x"}}}
    raw = json.dumps(added).encode() + b"\n" + json.dumps(gone).encode() + b"\n"
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(raw) + raw
    async with server(lambda _h, _n: reply) as (client, _):
        stream = client.watch(PODS, "n", resource_version="1")
        assert await anext(stream) == ("ADDED", {"metadata": {"name": "x"}})
        with pytest.raises(Gone):
            await anext(stream)


async def test_a_watch_cut_in_the_middle_of_a_line_just_ends() -> None:
    raw = b'{"type":"ADDED","object":{}}\n{"type":"MODI'
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(raw) + raw
    async with server(lambda _h, _n: reply) as (client, _):
        assert [kind async for kind, _ in client.watch(PODS)] == ["ADDED"]


class Chunks:
    """The part of a stream reader that line splitting uses."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    async def iter_any(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


@given(st.lists(st.binary(min_size=1).map(lambda b: b.replace(b"\n", b"-"))), st.data())
def test_lines_are_the_same_however_the_network_cuts_them(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    async def collect() -> list[bytes]:
        return [line async for line in watching.lines(Chunks(chunks))]  # type: ignore[arg-type]

    assert asyncio.run(collect()) == lines


def test_a_call_names_what_it_is_about() -> None:
    assert Call("get", "pods", "ns", "p").what() == 'pods "p" in namespace ns'
    assert Call("list", "nodes").what() == "nodes"
