"""A running router over a real HAProxy, and TLS servers to lead to."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import crds as support
from tests.support.api_server import free_port
from tests.support.eventually import eventually

from hcp import payload, pki
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.router.config import Settings
from hcp.router.controller import Router
from hcp.router.crd import route_crd
from hcp.router.haproxy import HAProxy

DOMAIN = "apps.10-88-0-64.hcp.test"


def own_address() -> str:
    """An address of this machine that EndpointSlices accept: loopback is refused there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


def haproxy_binary() -> str:
    return str(Path(payload.ensure(["haproxy"], progress=None)["haproxy"]) / "bin" / "haproxy")


@dataclass
class Backend:
    """A TLS server that greets with its name and then repeats every line."""

    name: str
    server: asyncio.Server
    # Who signed its certificate, in PEM form.
    authority: str = ""

    @property
    def port(self) -> int:
        return int(self.server.sockets[0].getsockname()[1])


async def start_backend(name: str, directory: Path, *, tls: bool, https: bool = False, told: bool = False) -> Backend:
    """`told`: it answers with what it was asked, and a header `x-old`."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ssl.SSLError):
            if tls and not https:
                writer.write(f"{name}\n".encode())
            head = b""
            while line := await reader.readline():
                head += line
                if tls and not https:
                    writer.write(line)
                elif line == b"\r\n":
                    body, head = (head if told else name.encode()), b""
                    more = b"X-Old: 1\r\n" if told else b""
                    writer.write(b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (more, len(body), body))
                await writer.drain()
        writer.close()

    context, authority = None, pki.new_ca("test")
    if tls:
        made = pki.issue(authority, name, dns=(name,), usage="server")
        (directory / f"{name}.pem").write_bytes(made.cert_pem + made.key_pem)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(directory / f"{name}.pem")
    server = await asyncio.start_server(talk, "0.0.0.0", 0, ssl=context)
    return Backend(name, server, authority.cert_pem.decode())


@dataclass
class World:
    """A running router and a namespace to put things into."""

    client: Client
    namespace: str
    router: Router
    process: HAProxy
    directory: Path
    servers: list[asyncio.Server] = field(default_factory=list)
    # How the router is started.
    options: dict[str, Any] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the router; a second time, one that remembers nothing but what the API server has."""
        self.router = Router(self.client, self.process, DOMAIN, **self.options)
        self.task = task = asyncio.create_task(self.router.run())

        async def ready() -> bool:
            return self.router.ready or task.done()

        await eventually(ready)
        if task.done():
            # At once, and with its reason: what is raised while something is waited for counts as not there yet.
            self.task = None
            task.result()

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.task

    async def other_namespace(self) -> str:
        made = await self.client.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-other-"}}
        )
        return str(made["metadata"]["name"])

    async def backend(self, name: str, *, tls: bool = True, https: bool = False, told: bool = False) -> Backend:
        made = await start_backend(name, self.directory, tls=tls, https=https, told=told)
        self.servers.append(made.server)
        return made

    async def dial(self, host: str, port: int = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str]:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        port = port or self.process.settings.https_port
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=host)
        return reader, writer, (await reader.readline()).decode().strip()

    async def greeting(self, host: str, port: int = 0) -> str | None:
        """The name of the server behind a host; None when the connection is refused."""
        try:
            _, writer, name = await self.dial(host, port)
        except (OSError, ssl.SSLError, ConnectionError):
            return None
        writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await writer.wait_closed()
        return name or None

    async def http(self, host: str, path: str = "/", method: str = "GET", *headers: str) -> tuple[int, str, str]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.process.settings.http_port)
        lines = (f"{method} {path} HTTP/1.1", f"Host: {host}:80", "Connection: close", *headers, "", "")
        writer.write("\r\n".join(lines).encode())
        await writer.drain()
        answer = (await reader.read()).decode()
        writer.close()
        head, _, body = answer.partition("\r\n\r\n")
        return int(head.split(" ")[1]), head, body

    async def https(self, host: str, path: str = "/", *, trust: str | None = None) -> tuple[int, str, str]:
        """An answer over TLS; `trust` is the authority that has to have signed what is shown."""
        context = ssl.create_default_context(cadata=trust)
        if trust is None:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.process.settings.https_port, ssl=context, server_hostname=host
        )
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        answer = (await reader.read()).decode()
        writer.close()
        head, _, body = answer.partition("\r\n\r\n")
        return int(head.split(" ")[1]), head, body

    async def service(self, name: str, *servers: Backend, ns: str = "") -> None:
        ns = ns or self.namespace
        labels = {"kubernetes.io/service-name": name}
        await self.client.apply(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name, "namespace": ns},
                "spec": {"ports": [{"name": "main", "port": 443, "targetPort": 6443}]},
            }
        )
        for number, server in enumerate(servers):
            await self.client.apply(
                {
                    "apiVersion": "discovery.k8s.io/v1",
                    "kind": "EndpointSlice",
                    "metadata": {"name": f"{name}-{number}", "namespace": ns, "labels": labels},
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
            more = spec.pop("certificates", {})
            body["spec"].pop("certificates", None)
            body["spec"]["tls"] = {"termination": tls, "insecureEdgeTerminationPolicy": insecure, **more}
        await self.client.apply(body)

    async def admitted(self, name: str, ns: str = "") -> dict[str, Any]:
        """The Admitted condition, as soon as there is one."""
        found: list[dict[str, Any]] = []

        async def check() -> bool:
            route = await self.client.get(r.ROUTES, name, ns or self.namespace)
            ingress = (route.get("status") or {}).get("ingress") or []
            found[:] = [condition for one in ingress for condition in one["conditions"]]
            return bool(found)

        await eventually(check)
        return found[0]

    async def reaches(self, host: str, name: str | None, port: int = 0) -> None:
        async def check() -> bool:
            return await self.greeting(host, port) == name

        await eventually(check)


@contextlib.asynccontextmanager
async def running_world(
    client: Client,
    namespace: str,
    directory: Path,
    crd: dict[str, Any] | None = None,
    *,
    wakes: bool = False,
    **options: Any,
) -> AsyncIterator[World]:
    await support.install(client, [crd or route_crd()])
    ports: dict[str, Any] = {name: free_port() for name in ("http_port", "https_port", "named_port")}
    ends = "certificate" in options
    # With a space and a letter that not every encoding has: a folder's name is anybody's choice.
    place = directory / "r \u00f6"
    settings = Settings(place, **ports, address="127.0.0.1", max_connections=200, ends_tls=ends, wakes=wakes)
    process = HAProxy(settings, haproxy_binary())
    made = World(client, namespace, Router(client, process, DOMAIN), process, directory, options=options)
    try:
        await made.start()
        yield made
    finally:
        await made.stop()
        for server in made.servers:
            server.close()
        for route in await client.list(r.ROUTES):
            await client.delete(r.ROUTES, route["metadata"]["name"], route["metadata"]["namespace"], missing_ok=True)
