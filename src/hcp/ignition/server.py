"""The bootstrap server's HTTP face: one path, one bearer token, one audit line per request.

Ignition tries again after an answer of 5xx and gives up after 4xx, so whatever may come right by itself (a token the
server has not heard of yet, too many requests at once) is answered with 5xx.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from hcp.ignition.catalog import Catalog, fingerprint
from hcp.ignition.limits import RateLimit
from hcp.ignition.store import Stored

_PATH = re.compile(r"^/ignition[^/ ]*$")
_TOO_MANY = 503


@dataclass(frozen=True)
class Answer:
    """What is sent back, and why, for the audit line."""

    status: int
    reason: str
    body: bytes = b""
    entry: Stored | None = None


def bearer_token(header: str) -> str | None:
    """The token of an Authorization header; None when the header is not one of ours."""
    scheme, _, encoded = header.partition(" ")
    if scheme != "Bearer" or not encoded:
        return None
    try:
        return base64.b64decode(encoded, validate=True).decode() or None
    except (binascii.Error, UnicodeDecodeError):
        return None


class BootstrapServer:
    """Answers nodes from a catalog; ``reached`` is told the first time a machine fetched a document."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        reached: Callable[[Stored], Awaitable[None]],
        audit: Callable[[str], None],
        count: Callable[[str], None] = lambda pool: None,
    ) -> None:
        self._catalog = catalog
        self._reached = reached
        self._audit = audit
        self._count = count
        # Behind a router all nodes share one source address: who shows a good token is limited by that token alone,
        # so that strangers at the same address use up nothing of theirs.
        self._strangers = RateLimit(rate=100, burst=400)
        self._per_token = RateLimit(rate=2, burst=20)
        # Refusals of strangers are written down one by one up to this pace, then counted.
        self._lines = RateLimit(rate=5, burst=100)
        self._unwritten = 0

    def application(self) -> web.Application:
        """The aiohttp application."""
        app = web.Application(client_max_size=4096)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.Response:
        started = time.monotonic()
        headers = request.headers
        token = bearer_token(headers.get("Authorization", ""))
        pool, target = headers.get("NodePool", ""), headers.get("TargetConfigVersionHash", "")
        answer = self.answer(request.method, request.path, request.remote or "", token, pool, target)
        if request.path != "/healthz":
            self._write_audit(request, answer, token, pool, target, started)
        if answer.entry is not None:
            self._count(answer.entry.node_pool)
            if not answer.entry.reached:
                await self._reached(answer.entry)
        if answer.status == 200:
            return web.Response(body=answer.body, content_type="application/json")
        extra = {"Retry-After": "2"} if answer.status == _TOO_MANY else {}
        return web.Response(status=answer.status, text=f"{answer.reason}\n", headers=extra)

    def answer(self, method: str, path: str, remote: str, token: str | None, pool: str, target: str) -> Answer:
        """Decide about one request."""
        if path == "/healthz":
            return Answer(200, "healthy", b"{}")
        if not _PATH.match(path):
            return Answer(404, "no such path")
        if method not in ("GET", "HEAD"):
            return Answer(405, "only GET is answered here")
        now = time.monotonic()
        entry = self._catalog.find(token, dt.datetime.now(dt.UTC)) if token is not None else None
        if entry is None:
            if not self._strangers.allow(remote, now):
                return Answer(_TOO_MANY, "too many requests from this address")
            if token is None:
                return Answer(401, "the Authorization header is missing or unreadable")
            return Answer(511, "the token is not known or has expired")
        if not self._per_token.allow(fingerprint(token or ""), now):
            return Answer(_TOO_MANY, "too many requests with this token")
        if pool != entry.node_pool or (target and target != entry.target):
            return Answer(401, "the token belongs to another node pool or configuration")
        payload = entry.payload()
        if not payload:
            return Answer(500, "the stored document is damaged")
        return Answer(200, "served", payload, entry)

    def _write_audit(
        self, request: web.Request, answer: Answer, token: str | None, pool: str, target: str, started: float
    ) -> None:
        if answer.entry is None and not self._lines.allow("", time.monotonic()):
            self._unwritten += 1
            return
        line: dict[str, Any] = {
            "time": dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds"),
            "audit": "ignition",
            "remote": request.remote,
            "method": request.method,
            "path": request.path[:200],
            "nodePool": pool[:200],
            "target": target[:64],
            # Enough to tell tokens apart, not enough to use one.
            "token": fingerprint(token)[:12] if token else "",
            "status": answer.status,
            "reason": answer.reason,
            "bytes": len(answer.body),
            "ms": round((time.monotonic() - started) * 1000, 2),
        }
        if self._unwritten:
            line["refusedUnwritten"], self._unwritten = self._unwritten, 0
        self._audit(json.dumps(line))
