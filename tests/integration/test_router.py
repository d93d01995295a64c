"""The router: real Routes, a real HAProxy, real TLS servers behind it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.integration import crds_support as support
from tests.integration.api_server import free_port

from hcp import payload, pki
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.errors import Invalid
from hcp.router.config import Settings
from hcp.router.controller import Router
from hcp.router.crd import route_crd
from hcp.router.haproxy import HAProxy
from hcp.router.maps import Maps

DOMAIN = "apps.10-88-0-64.hcp.test"


def own_address() -> str:
    """An address of this machine that EndpointSlices accept: loopback is refused there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


def haproxy_binary() -> str:
    return str(Path(payload.ensure(["haproxy"], progress=None)["haproxy"]) / "bin" / "haproxy")


async def until(check: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await check():
            await asyncio.sleep(0.05)


@dataclass
class Backend:
    """A TLS server that greets with its name and then repeats every line."""

    name: str
    server: asyncio.Server

    @property
    def port(self) -> int:
        return int(self.server.sockets[0].getsockname()[1])


async def start_backend(name: str, directory: Path, *, tls: bool) -> Backend:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ssl.SSLError):
            if tls:
                writer.write(f"{name}\n".encode())
            while line := await reader.readline():
                if tls:
                    writer.write(line)
                elif line == b"\r\n":
                    body = name.encode()
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                await writer.drain()
        writer.close()

    context = None
    if tls:
        made = pki.issue(pki.new_ca("test"), name, dns=(name,), usage="server")
        (directory / f"{name}.pem").write_bytes(made.cert_pem + made.key_pem)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(directory / f"{name}.pem")
    return Backend(name, await asyncio.start_server(talk, "0.0.0.0", 0, ssl=context))


@dataclass
class World:
    """A running router and a namespace to put things into."""

    client: Client
    namespace: str
    router: Router
    process: HAProxy
    directory: Path
    servers: list[asyncio.Server]

    async def backend(self, name: str, *, tls: bool = True) -> Backend:
        made = await start_backend(name, self.directory, tls=tls)
        self.servers.append(made.server)
        return made

    async def dial(self, host: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str]:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.process.settings.https_port, ssl=context, server_hostname=host
        )
        return reader, writer, (await reader.readline()).decode().strip()

    async def greeting(self, host: str) -> str | None:
        """The name of the server behind a host; None when the connection is refused."""
        try:
            _, writer, name = await self.dial(host)
        except (OSError, ssl.SSLError, ConnectionError):
            return None
        writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await writer.wait_closed()
        return name or None

    async def http(self, host: str, path: str = "/") -> tuple[int, str, str]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.process.settings.http_port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:80\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        answer = (await reader.read()).decode()
        writer.close()
        head, _, body = answer.partition("\r\n\r\n")
        return int(head.split(" ")[1]), head, body

    async def service(self, name: str, *servers: Backend) -> None:
        labels = {"kubernetes.io/service-name": name}
        await self.client.apply(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"ports": [{"name": "main", "port": 443, "targetPort": 6443}]},
            }
        )
        for number, server in enumerate(servers):
            await self.client.apply(
                {
                    "apiVersion": "discovery.k8s.io/v1",
                    "kind": "EndpointSlice",
                    "metadata": {"name": f"{name}-{number}", "namespace": self.namespace, "labels": labels},
                    "addressType": "IPv4",
                    "ports": [{"name": "main", "port": server.port, "protocol": "TCP"}],
                    "endpoints": [{"addresses": [own_address()], "conditions": {"ready": True}}],
                }
            )

    async def route(
        self, name: str, service: str, *, ns: str = "", tls: str = "passthrough", insecure: str = "None", **spec: Any
    ) -> None:
        body: dict[str, Any] = {
            "apiVersion": "route.openshift.io/v1",
            "kind": "Route",
            "metadata": {"name": name, "namespace": ns or self.namespace},
            "spec": {"to": {"kind": "Service", "name": service}, "port": {"targetPort": "main"}, **spec},
        }
        if tls:
            body["spec"]["tls"] = {"termination": tls, "insecureEdgeTerminationPolicy": insecure}
        await self.client.apply(body)

    async def admitted(self, name: str, ns: str = "") -> dict[str, Any]:
        """The Admitted condition, as soon as there is one."""
        found: list[dict[str, Any]] = []

        async def check() -> bool:
            route = await self.client.get(r.ROUTES, name, ns or self.namespace)
            ingress = (route.get("status") or {}).get("ingress") or []
            found[:] = [condition for one in ingress for condition in one["conditions"]]
            return bool(found)

        await until(check)
        return found[0]

    async def reaches(self, host: str, name: str | None) -> None:
        async def check() -> bool:
            return await self.greeting(host) == name

        await until(check)


@pytest.fixture
async def world(client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[World]:
    await support.install(client, [route_crd()])
    settings = Settings(tmp_path / "r", free_port(), free_port(), address="127.0.0.1", max_connections=200)
    process = HAProxy(settings, haproxy_binary())
    router = Router(client, process, DOMAIN)
    task = asyncio.create_task(router.run())
    servers: list[asyncio.Server] = []
    try:

        async def ready() -> bool:
            if task.done():
                task.result()
            return router.ready

        await until(ready)
        yield World(client, namespace, router, process, tmp_path, servers)
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        for server in servers:
            server.close()
        for route in await client.list(r.ROUTES):
            await client.delete(r.ROUTES, route["metadata"]["name"], route["metadata"]["namespace"])


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

    await until(both)


async def test_a_dead_pod_that_is_still_listed_costs_no_connection(world: World) -> None:
    dead, alive = await world.backend("dead"), await world.backend("alive")
    await world.service("api", dead, alive)
    await world.route("api", "api", host="api.example.com")
    seen: set[str | None] = set()

    async def both() -> bool:
        seen.add(await world.greeting("api.example.com"))
        return {"dead", "alive"} <= seen

    await until(both)
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
    other = await world.client.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-other-"}}
    )
    ns = other["metadata"]["name"]
    # Ages are compared in seconds.
    await asyncio.sleep(1.1)
    await world.route("api", "api", ns=ns, host="api.example.com")
    refused = await world.admitted("api", ns)
    assert (refused["status"], refused["reason"]) == ("False", "HostAlreadyClaimed")
    await world.reaches("api.example.com", "one")
    await world.client.delete(r.ROUTES, "api", world.namespace)

    async def takes_over() -> bool:
        return bool((await world.admitted("api", ns))["status"] == "True")

    await until(takes_over)


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

    await until(both)
    assert (await world.http("unknown.example.com"))[0] == 503
    assert (await world.http("anything", "/_router/healthz"))[0] == 200


async def test_insecure_redirect(world: World) -> None:
    one = await world.backend("one")
    await world.service("api", one)
    await world.route("api", "api", host="api.example.com", insecure="Redirect")

    async def redirected() -> bool:
        status, head, _ = await world.http("api.example.com", "/x")
        return status == 302 and "location: https://api.example.com" in head.lower()

    await until(redirected)


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

    await until(again)
    await world.reaches("api.example.com", "one")


async def test_a_taken_port_is_an_error_at_once(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = HAProxy(Settings(tmp_path, free_port(), port, address="127.0.0.1"), haproxy_binary())
        with pytest.raises(HcpError, match="ended at once"):
            await process.start(Maps())
        await process.close()


async def test_a_missing_program_is_said(tmp_path: Path) -> None:
    with pytest.raises(HcpError, match="was not found"):
        await HAProxy(Settings(tmp_path), "no-such-haproxy").start(Maps())


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
    await asyncio.sleep(0.5)
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
