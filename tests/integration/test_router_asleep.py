"""Connections to a hosted API that sleeps: a real router and HAProxy, Routes as the operator marks them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.eventually import eventually
from tests.support.router import World, running_world

from hcp.api import names
from hcp.api.paths import annotations_of
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.router import sleepers
from hcp.router.config import SCRIPT

HOST = "api.asleep.example.com"
SINCE = "2026-03-11T19:00:00Z"


@pytest.fixture
async def world(client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[World]:
    async with running_world(client, namespace, tmp_path, wakes=True) as made:
        yield made


async def marked(world: World, name: str, since: str | None) -> None:
    body = {"metadata": {"annotations": {names.MARK_SLEEPS_SINCE: since}}}
    await world.client.patch(r.ROUTES, name, world.namespace, body)


async def asked_for(world: World, name: str = "api") -> str | None:
    return annotations_of(await world.client.get(r.ROUTES, name, world.namespace)).get(names.MARK_ASKED_FOR)


async def a_sleeper(world: World, name: str = "api", host: str = HOST, **spec: str) -> None:
    """A Route whose Service has no pods, with the operator's mark; HAProxy knows of it."""
    await world.service(name)
    await world.route(name, name, host=host, **spec)
    await marked(world, name, SINCE)

    async def known() -> bool:
        return f" {host} 1" in await world.process.command("show map tls-asleep.map")

    await eventually(known, "HAProxy knows that it sleeps")


def hello(host: str) -> bytes:
    """How a TLS connection begins."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    talk = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=host)
    with contextlib.suppress(ssl.SSLWantReadError):
        talk.do_handshake()
    return outgoing.read()


async def held(world: World, count: int) -> None:
    async def check() -> bool:
        return world.router.sleepers.held == count

    await eventually(check, f"{count} wait")


async def test_a_connection_waits_for_the_pods_and_then_goes_on(world: World) -> None:
    await a_sleeper(world)
    first = asyncio.create_task(world.greeting(HOST))
    await held(world, 1)
    await eventually(lambda: _is(world, SINCE), "the Route says that somebody asked")
    # Hosts that nobody has, and the names beside it, are refused as before.
    assert await world.greeting("api.nobody.example.com") is None
    assert await world.greeting(f"other.{HOST}") is None
    # Longer than the usual way of a connection may take.
    await asyncio.sleep(8)
    assert not first.done()
    second = asyncio.create_task(world.greeting(HOST.upper()))
    await held(world, 2)
    pid = world.process.pid
    await world.service("api", await world.backend("awake"))
    assert [await first, await second] == ["awake", "awake"]
    await held(world, 0)
    assert world.process.pid == pid
    # The mark stays until the operator takes it away, and hinders nobody.
    assert await world.greeting(HOST) == "awake"


async def _is(world: World, since: str) -> bool:
    return await asked_for(world) == since


async def test_it_is_written_once_in_a_sleep(world: World) -> None:
    await a_sleeper(world)
    waiting = [asyncio.create_task(world.greeting(HOST)) for _ in range(5)]
    await held(world, 5)
    await eventually(lambda: _is(world, SINCE), "the Route says that somebody asked")
    version = (await world.client.get(r.ROUTES, "api", world.namespace))["metadata"]["resourceVersion"]
    waiting.append(asyncio.create_task(world.greeting(HOST)))
    await held(world, 6)
    # The next sleep, which nobody has asked for yet: what waits for the first one was heard already.
    live = await world.client.get(r.ROUTES, "api", world.namespace)
    assert live["metadata"]["resourceVersion"] == version
    later = "2026-03-12T19:00:00Z"
    await marked(world, "api", later)

    async def another() -> None:
        """The router may have taken the one before it for the first sleep's."""
        waiting.append(asyncio.create_task(world.greeting(HOST)))
        await held(world, len(waiting))

    await eventually(lambda: _is(world, later), "the next sleep was asked for", between=another)
    await world.service("api", await world.backend("awake"))
    assert set(await asyncio.gather(*waiting)) == {"awake"}


async def test_what_is_not_marked_is_refused_at_once(world: World) -> None:
    await a_sleeper(world)
    await world.service("plain")
    await world.route("plain", "plain", host="plain.example.com")
    await world.admitted("plain")
    assert await world.greeting("plain.example.com") is None
    assert await asked_for(world, "plain") is None
    # A wildcard beside it, of the same namespace, does not answer for it either.
    await world.service("all", await world.backend("all"))
    await world.route("all", "all", host="all.asleep.example.com", wildcardPolicy="Subdomain")
    await world.reaches("beside.asleep.example.com", "all")
    waiting = asyncio.create_task(world.greeting(HOST))
    await held(world, 1)
    # Who takes the mark away, or the Route, lets go who waits: now the wildcard is what is left.
    await world.client.delete(r.ROUTES, "api", world.namespace)
    await waiting
    await held(world, 0)
    await world.reaches(HOST, "all")


async def test_nodes_that_name_their_api_do_not_wake_it(world: World) -> None:
    await a_sleeper(world)
    reader, writer = await asyncio.open_connection("127.0.0.1", world.process.settings.named_port)
    tlv = b"\x05" + len(HOST).to_bytes(2, "big") + HOST.encode()
    head = b"\r\n\r\n\x00\r\nQUIT\n\x21\x11"
    address = b"\x7f\x00\x00\x01" * 2 + (1).to_bytes(2, "big") + (2).to_bytes(2, "big")
    writer.write(head + (len(address) + len(tlv)).to_bytes(2, "big") + address + tlv + b"hello")
    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()
    assert await asked_for(world) is None
    assert world.router.sleepers.held == 0


async def test_whom_an_annotation_keeps_out_wakes_nothing(world: World) -> None:
    await a_sleeper(world)
    allowed = {"haproxy.router.openshift.io/ip_allowlist": "192.0.2.1"}
    await world.client.patch(r.ROUTES, "api", world.namespace, {"metadata": {"annotations": allowed}})

    async def refused() -> bool:
        try:
            return await asyncio.wait_for(world.greeting(HOST), 1) is None
        except TimeoutError:
            return False  # it waits, since HAProxy has not heard of it

    await eventually(refused, "others are kept out")
    since = "2026-03-12T19:00:00Z"
    await marked(world, "api", since)
    await a_sleeper(world, "other", "other.example.com")
    assert await world.greeting(HOST) is None
    assert await asked_for(world) != since


async def test_more_than_can_wait_are_refused_and_others_are_not(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sleepers, "PER_HOST", 3)
    monkeypatch.setattr(sleepers, "IN_ALL", 4)
    await a_sleeper(world)
    await a_sleeper(world, "other", "other.example.com")
    waiting = [asyncio.create_task(world.greeting(HOST)) for _ in range(3)]
    await held(world, 3)
    assert await world.greeting(HOST) is None
    other = asyncio.create_task(world.greeting("other.example.com"))
    await held(world, 4)
    assert await world.greeting("other.example.com") is None
    await world.service("api", await world.backend("awake"))
    await world.service("other", await world.backend("too"))
    assert [await asyncio.gather(*waiting), await other] == [["awake"] * 3, "too"]


async def test_a_client_that_left_meanwhile_harms_nobody(world: World) -> None:
    """HAProxy does not look at a connection while its script waits, so it is counted until the host is awake."""
    await a_sleeper(world)
    _, writer = await asyncio.open_connection("127.0.0.1", world.process.settings.https_port)
    writer.write(hello(HOST))
    await held(world, 1)
    writer.close()
    stays = asyncio.create_task(world.greeting(HOST))
    await held(world, 2)
    await world.service("api", await world.backend("awake"))
    assert await stays == "awake"
    await held(world, 0)


async def test_time_runs_out_for_a_cluster_that_does_not_come(world: World) -> None:
    await a_sleeper(world)
    world.router.sleepers._hold = 0.5
    assert await world.greeting(HOST) is None
    assert await asked_for(world) == SINCE


async def test_a_router_that_starts_again_knows_who_sleeps(world: World) -> None:
    await a_sleeper(world)
    await world.stop()
    await world.start()
    waiting = asyncio.create_task(world.greeting(HOST))
    await held(world, 1)
    await eventually(lambda: _is(world, SINCE), "the Route says that somebody asked")
    await world.service("api", await world.backend("awake"))
    assert await waiting == "awake"


async def test_a_router_that_was_not_told_to_holds_nobody(client: Client, namespace: str, tmp_path: Path) -> None:
    """Such as those inside hosted clusters, where anybody may write marks."""
    async with running_world(client, namespace, tmp_path) as world:
        settings = world.process.settings
        assert not (settings.directory / SCRIPT).exists()
        assert "lua" not in (settings.directory / "haproxy.cfg").read_text()
        await world.service("api")
        await world.route("api", "api", host=HOST)
        await marked(world, "api", SINCE)
        await world.admitted("api")
        assert await world.greeting(HOST) is None
        assert await asked_for(world) is None
        assert "tls-asleep" not in settings.tables
        assert dataclasses.replace(settings, wakes=True).tables != settings.tables
