"""Pods of many hosted clusters reach their API over one address of the router, though all call it by the same name.

A real router, and the HAProxy of nodes with the configuration that nodes get.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.api_server import free_port
from tests.support.router import World, haproxy_binary, running_world

from hcp.ignition.apiproxy import ApiProxy, haproxy_config
from hcp.kube import Client

INSIDE = "kubernetes.default"


@pytest.fixture
async def world(client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[World]:
    async with running_world(client, namespace, tmp_path) as made:
        yield made


@contextlib.asynccontextmanager
async def node_of(world: World, host: str) -> AsyncIterator[int]:
    """The node-side proxy of the cluster whose API has this host; gives the port where pods find it."""
    port = free_port()
    proxy = ApiProxy("127.0.0.1", port, "127.0.0.1", world.process.settings.named_port, "-", named=host)
    config = world.directory / f"{host}.cfg"
    config.write_text(haproxy_config(proxy))
    process = await asyncio.create_subprocess_exec(haproxy_binary(), "-db", "-f", str(config))
    try:
        yield port
    finally:
        process.kill()
        await process.wait()


async def test_clusters_that_share_an_address_reach_each_its_own_api(world: World) -> None:
    for name in ("one", "two"):
        await world.service(name, await world.backend(name))
        await world.route(name, name, host=f"api.{name}.example.com")
    async with node_of(world, "api.one.example.com") as first, node_of(world, "api.two.example.com") as second:
        await world.reaches(INSIDE, "one", first)
        await world.reaches(INSIDE, "two", second)
    # By the name that TLS carries alone nobody is found.
    assert await world.greeting(INSIDE) is None


async def test_a_dead_pod_that_is_still_listed_costs_no_connection_by_name(world: World) -> None:
    dead, alive = await world.backend("dead"), await world.backend("alive")
    await world.service("api", dead, alive)
    await world.route("api", "api", host="api.example.com")
    async with node_of(world, "api.example.com") as port:
        await world.reaches(INSIDE, "alive", port)
        dead.server.close()
        assert [await world.greeting(INSIDE, port) for _ in range(8)] == ["alive"] * 8


async def test_a_name_that_no_route_has_is_refused(world: World) -> None:
    await world.service("api", await world.backend("one"))
    await world.route("api", "api", host="api.example.com")
    async with node_of(world, "api.example.com") as known, node_of(world, "api.elsewhere.example.com") as unknown:
        await world.reaches(INSIDE, "one", known)
        assert await world.greeting(INSIDE, unknown) is None
