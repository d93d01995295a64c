"""The router: real Routes, a real HAProxy, real TLS servers behind it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import crds as support
from tests.support.api_server import free_port
from tests.support.eventually import eventually
from tests.support.router import DOMAIN, World, haproxy_binary, running_world

from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.errors import Invalid
from hcp.router.config import Settings
from hcp.router.crd import route_crd
from hcp.router.haproxy import HAProxy


@pytest.fixture
async def world(client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[World]:
    async with running_world(client, namespace, tmp_path) as made:
        yield made


async def test_a_passthrough_route_gets_a_host_and_leads_to_its_pod(world: World) -> None:
    one = await world.backend("one")
    await world.service("api", one)
    await world.route("api", "api")
    assert (await world.admitted("api"))["status"] == "True"
    host = f"api-{world.namespace}.{DOMAIN}"
    route = await world.client.get(r.ROUTES, "api", world.namespace)
    assert route["spec"]["host"] == host
    assert route["metadata"]["annotations"]["openshift.io/host.generated"] == "true"
    assert route["status"]["ingress"][0]["routerCanonicalHostname"] == f"router-default.{DOMAIN}"
    await world.reaches(host, "one")
    assert await world.greeting(f"other.{DOMAIN}") is None


async def test_connections_survive_changes_and_new_ones_follow_them(world: World) -> None:
    one, two = await world.backend("one"), await world.backend("two")
    await world.service("api", one)
    await world.route("api", "api", host="api.example.com")
    await world.reaches("api.example.com", "one")
    reader, writer, _ = await world.dial("api.example.com")
    pid = world.process.pid
    await world.service("api", two)
    await world.reaches("api.example.com", "two")
    await world.client.delete(r.ROUTES, "api", world.namespace)
    await world.reaches("api.example.com", None)
    writer.write(b"still here\n")
    await writer.drain()
    assert await reader.readline() == b"still here\n"
    assert world.process.pid == pid
    writer.close()


async def test_connections_are_spread_over_all_pods(world: World) -> None:
    one, two = await world.backend("one"), await world.backend("two")
    await world.service("api", one, two)
    await world.route("api", "api", host="api.example.com")
    seen: set[str | None] = set()

    async def both() -> bool:
        seen.add(await world.greeting("api.example.com"))
        return {"one", "two"} <= seen

    await eventually(both)


async def test_a_dead_pod_that_is_still_listed_costs_no_connection(world: World) -> None:
    dead, alive = await world.backend("dead"), await world.backend("alive")
    await world.service("api", dead, alive)
    await world.route("api", "api", host="api.example.com")
    seen: set[str | None] = set()

    async def both() -> bool:
        seen.add(await world.greeting("api.example.com"))
        return {"dead", "alive"} <= seen

    await eventually(both)
    dead.server.close()
    assert {await world.greeting("api.example.com") for _ in range(20)} == {"alive"}


async def test_a_wildcard_takes_every_name_beside_it_but_not_deeper_ones(world: World) -> None:
    one, two = await world.backend("one"), await world.backend("two")
    await world.service("wild", one)
    await world.service("exact", two)
    await world.route("wild", "wild", host="https.apps.c.example.com", wildcardPolicy="Subdomain")
    await world.reaches("console.apps.c.example.com", "one")
    await world.reaches("CONSOLE.apps.c.example.com", "one")
    assert await world.greeting("a.b.apps.c.example.com") is None
    await world.route("exact", "exact", host="console.apps.c.example.com")
    await world.reaches("console.apps.c.example.com", "two")
    await world.reaches("other.apps.c.example.com", "one")


async def test_the_second_claimant_is_refused_and_follows_later(world: World) -> None:
    one = await world.backend("one")
    await world.service("api", one)
    await world.route("api", "api", host="api.example.com")
    assert (await world.admitted("api"))["status"] == "True"
    ns = await world.other_namespace()
    await world.route("api", "api", ns=ns, host="api.example.com")
    refused = await world.admitted("api", ns)
    assert (refused["status"], refused["reason"]) == ("False", "HostAlreadyClaimed")
    await world.reaches("api.example.com", "one")
    await world.client.delete(r.ROUTES, "api", world.namespace)

    async def takes_over() -> bool:
        return bool((await world.admitted("api", ns))["status"] == "True")

    await eventually(takes_over)


async def test_plain_http_by_host_and_longest_path(world: World) -> None:
    root, api = await world.backend("root", tls=False), await world.backend("api", tls=False)
    await world.service("root", root)
    await world.service("api", api)
    await world.route("root", "root", tls="", host="web.example.com")
    await world.route("api", "api", tls="", host="web.example.com", path="/api")

    async def both() -> bool:
        return (await world.http("web.example.com"))[2] == "root" and (await world.http("web.example.com", "/api/v1"))[
            2
        ] == "api"

    await eventually(both)
    assert (await world.http("unknown.example.com"))[0] == 503
    assert (await world.http("anything", "/_router/healthz"))[0] == 200


async def test_insecure_redirect(world: World) -> None:
    one = await world.backend("one")
    await world.service("api", one)
    await world.route("api", "api", host="api.example.com", insecure="Redirect")

    async def redirected() -> bool:
        status, head, _ = await world.http("api.example.com", "/x")
        return status == 302 and "location: https://api.example.com" in head.lower()

    await eventually(redirected)


async def test_haproxy_is_started_again_with_the_newest_tables(world: World) -> None:
    one = await world.backend("one")
    await world.service("api", one)
    await world.route("api", "api", host="api.example.com")
    await world.reaches("api.example.com", "one")
    pid = world.process.pid
    assert world.process._process is not None
    world.process._process.kill()

    async def again() -> bool:
        return world.process.pid not in (None, pid)

    await eventually(again)
    await world.reaches("api.example.com", "one")


async def test_a_taken_port_is_an_error_at_once(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = HAProxy(Settings(tmp_path, free_port(), port, address="127.0.0.1"), haproxy_binary())
        with pytest.raises(HcpError, match="ended at once"):
            await process.start()
        await process.close()


async def test_a_folder_too_deep_for_a_socket_is_said(tmp_path: Path) -> None:
    with pytest.raises(HcpError, match="too long"):
        await HAProxy(Settings(tmp_path / ("deep" * 30)), haproxy_binary()).start()


async def test_a_missing_program_is_said(tmp_path: Path) -> None:
    with pytest.raises(HcpError, match="was not found"):
        await HAProxy(Settings(tmp_path), "no-such-haproxy").start()


async def test_a_steady_router_writes_nothing(world: World) -> None:
    one = await world.backend("one")
    await world.service("api", one)
    await world.route("api", "api")
    await world.admitted("api")
    version = (await world.client.get(r.ROUTES, "api", world.namespace))["metadata"]["resourceVersion"]
    for number in range(5):
        await world.client.create(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": f"s{number}", "namespace": world.namespace},
                "spec": {"ports": [{"port": 1}]},
            }
        )
    # When a Route that came after them is admitted, the router has looked at them all.
    await world.route("late", "api")
    await world.admitted("late")
    route = await world.client.get(r.ROUTES, "api", world.namespace)
    assert route["metadata"]["resourceVersion"] == version


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"to": {"kind": "Pod", "name": "x"}}, "Unsupported value"),
        ({"to": {"kind": "Service", "name": "x"}, "host": "a b"}, "spec.host"),
        ({"to": {"name": "x"}, "tls": {"termination": "magic"}}, "Unsupported value"),
        ({"to": {"name": "x"}, "path": "/a", "tls": {"termination": "passthrough"}}, "takes no path"),
    ],
)
async def test_bad_routes_are_refused(client: Client, namespace: str, spec: dict[str, Any], words: str) -> None:
    await support.install(client, [route_crd()])
    body = {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"name": "bad", "namespace": namespace},
        "spec": spec,
    }
    with pytest.raises(Invalid) as refused:
        await client.create(body, dry_run=True)
    assert words in str(refused.value)
