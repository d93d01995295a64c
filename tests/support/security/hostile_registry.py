"""Registries that an attacker runs: they answer what they like, and write down what they are sent."""

from __future__ import annotations

import contextlib
import hashlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from hcp import pki
from hcp.oci.client import MANIFEST_TYPES

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def digest_of(raw: bytes) -> str:
    return "sha256:" + hashlib.sha256(raw).hexdigest()


@dataclass
class Hostile:
    """`answers` has the answer of every path; what has none is 404."""

    host: str
    port: int
    ca_pem: bytes
    scheme: str = "https"
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)

    @property
    def registry(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.registry}"

    def image(self, name: str = "a/b:t") -> str:
        return f"{self.registry}/{name}"

    def serve(self, path: str, body: bytes | Any, kind: str = "application/octet-stream") -> str:
        """Answer a path with bytes, or JSON; the digest of what is answered."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()

        async def answer(_request: web.Request) -> web.Response:
            return web.Response(body=raw, content_type=kind)

        self.answers[path] = answer
        return digest_of(raw)

    def serve_image(self, layers: list[bytes], config: Any = None, name: str = "a/b", tag: str = "t") -> None:
        """An image with these layers."""
        about = json.dumps(config or {"architecture": "amd64"}).encode()
        for raw in (about, *layers):
            self.serve(f"/v2/{name}/blobs/{digest_of(raw)}", raw)
        body = {
            "mediaType": MANIFEST_TYPES[0],
            "config": {"digest": digest_of(about)},
            "layers": [{"digest": digest_of(raw)} for raw in layers],
        }
        digest = self.serve(f"/v2/{name}/manifests/{tag}", body, MANIFEST_TYPES[0])
        self.serve(f"/v2/{name}/manifests/{digest}", body, MANIFEST_TYPES[0])

    def redirect(self, path: str, target: str) -> None:
        async def answer(_request: web.Request) -> web.Response:
            return web.Response(status=307, headers={"Location": target})

        self.answers[path] = answer

    def want_token(self, path: str, realm: str) -> None:
        """Ask for a bearer token from `realm` before the answer is given."""
        inner = self.answers[path]

        async def answer(request: web.Request) -> web.StreamResponse:
            if request.headers.get("Authorization") == "Bearer good":
                return await inner(request)
            return web.Response(status=401, headers={"WWW-Authenticate": f'Bearer realm="{realm}",service="s"'})

        self.answers[path] = answer

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        if "Authorization" in request.headers:
            self.logins.append(request.headers["Authorization"])
        answer = self.answers.get(request.path)
        return await answer(request) if answer is not None else web.Response(status=404)


@contextlib.asynccontextmanager
async def hostile(
    folder: Path, host: str, *, bind: str = "", covers: tuple[str, ...] = (), tls: bool = True
) -> AsyncIterator[Hostile]:
    """A server under a name or address of this machine; its certificate covers that and `covers`."""
    names = [name for name in (host, *covers) if not name[0].isdigit()]
    addresses = [name for name in (host, *covers) if name[0].isdigit()]
    ca = pki.new_ca("hostile")
    pair = pki.issue(ca, host, dns=tuple(names), ips=tuple(addresses), usage="server")
    context = None
    if tls:
        file = folder / f"{host}-{id(pair)}.pem"
        file.write_bytes(pair.cert_pem + pair.key_pem)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(file)
    made = Hostile(host, 0, ca.cert_pem, "https" if tls else "http")
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made._handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, bind or ("127.0.0.1" if host == "localhost" else host), 0, ssl_context=context)
    await site.start()
    made.port = runner.addresses[0][1]
    try:
        yield made
    finally:
        await runner.cleanup()
