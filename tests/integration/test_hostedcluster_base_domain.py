"""A base domain of the owner's: Partial until Service and record are made and the canary answers, then Completed.

The canary's request is a real one over TLS, to a server that shows what the router inside shows; only the name server
and the port, which belongs to the machine, are the test's.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support import guest_nodes
from tests.support import management as s
from tests.support.api_server import free_port
from tests.support.eventually import eventually
from tests.support.guides import documents
from tests.support.hosted_api import hosted_api
from tests.support.hosted_operator import Running, mentions, rests
from tests.support.registry import Registry
from tests.support.router import own_address

from hcp import payload
from hcp.hostedcluster import canary
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.payload.release import definitions
from hcp.runtime.conditions import condition_of

NAME, NS, ZONE = "own", "clusters-own", "bank.test"
DOMAIN = f"apps.{NAME}.{ZONE}"


class Outside:
    """The owner's name server, and what answers at the address it names."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.port = folder, free_port()
        self.records: dict[str, str] = {}
        # What the router inside says of the canary.
        self.status = "503 Service Unavailable"
        self._server: asyncio.Server | None = None

    def find(self, real: Callable[..., Any], host: Any, *more: Any, **options: Any) -> Any:
        name = str(host)
        if not name.endswith(f".{ZONE}"):
            return real(host, *more, **options)
        if not (address := self.records.get(f"*.{name.partition('.')[2]}.")):
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return real(address, *more, **options)

    async def begin(self, secret: dict[str, Any]) -> None:
        """As the router inside would, with the certificate it was given."""
        for name in ("tls.crt", "tls.key"):
            (self._folder / name).write_bytes(base64.b64decode(secret["data"][name]))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._folder / "tls.crt", self._folder / "tls.key")
        self._server = await asyncio.start_server(self._answer, own_address(), self.port, ssl=context)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ssl.SSLError):
            await reader.readline()
            writer.write(f"HTTP/1.1 {self.status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
        writer.close()

    def end(self) -> None:
        if self._server is not None:
            self._server.close()


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outside:
    folder = tmp_path / "outside"
    folder.mkdir()
    made = Outside(folder)
    monkeypatch.setattr(socket, "getaddrinfo", partial(made.find, socket.getaddrinfo))
    monkeypatch.setattr(canary, "PORT", made.port)
    monkeypatch.setattr(canary, "AGAIN", 1.0)
    monkeypatch.setattr(canary.Canary, "again", 1.0)
    return made


@pytest.fixture
async def guest(
    admin: Client,
    operator: Callable[[], Running],
    registry: Registry,
    tmp_path: Path,
    bin_dir: Path,
    outside: Outside,
) -> AsyncIterator[Client]:
    folder = payload.ensure(["openshift-definitions"])["openshift-definitions"] / "manifests" / "crds"
    told = {"CONFIG_DEFINITIONS": definitions(folder)}
    image = await s.push_release(registry, tmp_path, "1.36.3", (*s.COMPONENTS, "router"), **told)
    operator()
    async with hosted_api(admin, NAME, image, registry, tmp_path, bin_dir, dns={"baseDomain": ZONE}) as client:
        yield client
    outside.end()


async def test_a_base_domain_of_ones_own_is_completed_by_its_record(
    admin: Client, guest: Client, outside: Outside
) -> None:
    async def state() -> str:
        live = await admin.get(k.HOSTEDCLUSTERS, NAME, "clusters")
        return str(live["status"]["version"]["history"][0]["state"])

    async def degraded(status: str) -> str | None:
        found = condition_of(await guest.get(k.CLUSTEROPERATORS, "ingress"), "Degraded") or {}
        return str(found.get("reason") or "none") if found.get("status") == status else None

    says = partial(mentions, admin, NAME, "Progressing")
    await guest_nodes.join(guest, "one")
    available = partial(guest_nodes.report_available, guest)
    await eventually(lambda: says(f"make a Service {NAME}-apps of type LoadBalancer"), "the first thing", available)
    assert await state() == "Partial"
    assert await eventually(lambda: degraded("True"), "it is told inside") == "CanaryChecksRepetitiveFailures"

    ports = (await guest.get(k.SERVICES, "router-nodeport-default", "openshift-ingress"))["spec"]["ports"]
    given = {one["name"]: one["nodePort"] for one in ports}
    await admin.create(documents.apps_service(NAME, NS, given["https"], given["http"]))
    await eventually(lambda: says("has no address yet"), "the load balancer of the infra cluster is waited for")
    told = (await admin.get(k.SERVICES, f"{NAME}-apps", NS))["metadata"]["annotations"]
    assert told["external-dns.alpha.kubernetes.io/hostname"] == f"*.{DOMAIN}"
    address = {"status": {"loadBalancer": {"ingress": [{"ip": own_address()}]}}}
    await admin.patch(k.SERVICES, f"{NAME}-apps", NS, address, subresource="status")
    record = f"*.{DOMAIN}. IN A {own_address()}"
    await eventually(lambda: says(f"make the DNS record: {record}"), "the record, to the letter")

    # The name leads there, and the router answers, but not yet the pods behind it.
    await outside.begin(await admin.get(k.SECRETS, "ingress-crt", NS))
    outside.records[f"*.{DOMAIN}."] = own_address()
    await eventually(lambda: says("does not reach the pods of the canary"), "how far a request gets")
    assert await state() == "Partial"

    outside.status = "200 OK"

    async def completed() -> bool:
        return await state() == "Completed"

    await eventually(completed, "the version is reached by itself", available)
    await eventually(lambda: degraded("False"), "and inside all is well")
    await eventually(lambda: rests(admin, NAME), "a pass that writes nothing")
