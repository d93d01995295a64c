"""A server in front of a real registry: counts what passes, cuts uploads, is busy, or wants tokens."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

_HOP = {"host", "transfer-encoding", "connection", "content-length", "authorization"}
_PIECE = 64 << 10


@dataclass
class Front:
    """`cuts`: after so many bytes each of the next PATCH requests loses its connection. `busy`: so many requests are
    told to come again, by turns with 429 and 503. `halves`: so many blobs are sent half, and the connection ends.
    `lost`: so many PUT requests are done, and nobody hears of it. `tokens`: requests need a token, bought with the
    login `push`/`secret`, with enough scope.
    """

    upstream: str
    cuts: list[int] = field(default_factory=list)
    busy: int = 0
    halves: int = 0
    lost: int = 0
    tokens: bool = False
    port: int = 0
    tls: ssl.SSLContext | None = None
    seen: Counter[str] = field(default_factory=Counter)
    # Bytes of blobs that came in, those of broken uploads too.
    received: int = 0
    scopes: list[list[str]] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"localhost:{self.port}"

    @property
    def address(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.host}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/token":
            return self._token(request)
        self.seen[request.method] += 1
        if self.busy > 0 and request.method != "HEAD":
            self.busy -= 1
            return web.Response(status=(503, 429)[self.busy % 2], headers={"Retry-After": "0"}, text="later")
        if self.tokens and (missing := self._missing(request)):
            realm = f'Bearer realm="{self.address}/token",service="front",scope="{missing}"'
            return web.Response(status=401, headers={"WWW-Authenticate": realm})
        return await self._pass_on(request)

    def _needed(self, request: web.Request) -> list[str]:
        repository = request.path.removeprefix("/v2/").rsplit("/blobs/", 1)[0].rsplit("/manifests/", 1)[0]
        actions = "pull" if request.method in ("GET", "HEAD") else "pull,push"
        needed = [f"repository:{repository}:{actions}"]
        if "from" in request.query:
            needed.append(f"repository:{request.query['from']}:pull")
        return needed

    def _missing(self, request: web.Request) -> str:
        """The scopes a request needs, unless its token has them all."""
        needed = self._needed(request)
        has = request.headers.get("Authorization", "").removeprefix("Bearer ").split("|")
        return "" if all(any(_covers(one, want) for one in has) for want in needed) else " ".join(needed)

    def _token(self, request: web.Request) -> web.Response:
        login = aiohttp.BasicAuth.decode(request.headers.get("Authorization", "Basic Og=="))
        if (login.login, login.password) != ("push", "secret"):
            return web.Response(status=401)
        scopes = request.query.getall("scope")
        self.scopes.append(scopes)
        return web.json_response({"token": "|".join(scopes)})

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        cut = self.cuts.pop(0) if self.cuts and request.method == "PATCH" else None

        async def body() -> AsyncIterator[bytes]:
            passed = 0
            async for data in request.content.iter_chunked(_PIECE):
                passed += len(data)
                self.received += len(data) if request.method in ("PATCH", "PUT") else 0
                yield data
                if cut is not None and passed >= cut:
                    assert request.transport is not None
                    request.transport.close()
                    raise ConnectionResetError

        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        if request.headers.get("Content-Length") and cut is None:
            headers["Content-Length"] = request.headers["Content-Length"]
        data = body() if request.can_read_body else None
        url = f"{self.upstream}{request.raw_path}"
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.request(request.method, url, headers=headers, data=data, allow_redirects=False) as answer,
        ):
            kept = {
                name: value for name, value in answer.headers.items() if name.lower() not in _HOP - {"content-length"}
            }
            if "Location" in kept:
                kept["Location"] = kept["Location"].replace(self.upstream, self.address)
            if request.method == "PUT" and self.lost > 0:
                self.lost -= 1
                assert request.transport is not None
                request.transport.close()
                raise ConnectionResetError
            made = web.StreamResponse(status=answer.status, headers=kept)
            await made.prepare(request)
            half = None
            if self.halves > 0 and request.method == "GET" and "/blobs/" in request.path and answer.status == 200:
                self.halves -= 1
                half = int(answer.headers["Content-Length"]) // 2
            async for piece in answer.content.iter_chunked(_PIECE):
                if half is not None and half < len(piece):
                    await made.write(piece[:half])
                    assert request.transport is not None
                    request.transport.close()
                    raise ConnectionResetError
                half = half - len(piece) if half is not None else None
                await made.write(piece)
            return made


def _covers(have: str, want: str) -> bool:
    name, _, actions = have.rpartition(":")
    wanted_name, _, wanted = want.rpartition(":")
    return name == wanted_name and set(wanted.split(",")) <= set(actions.split(","))


@asynccontextmanager
async def front(upstream: str, **how: object) -> AsyncIterator[Front]:
    made = Front(upstream, **how)  # type: ignore[arg-type]
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{rest:.*}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "localhost", 0, ssl_context=made.tls)
    await site.start()
    made.port = runner.addresses[0][1]
    try:
        yield made
    finally:
        await asyncio.shield(runner.cleanup())
