"""A little HTTP server for probes and Prometheus: /healthz, /readyz, /metrics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from hcp.runtime import metrics

Answer = tuple[int, str, str]
REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
TEXT = "text/plain; charset=utf-8"


class HealthServer:
    """Runs until `close`."""

    def __init__(
        self,
        ready: Callable[[], bool],
        live: Callable[[], bool] = lambda: True,
        registry: metrics.Registry | None = None,
    ) -> None:
        self._ready = ready
        self._live = live
        self._registry = registry
        self._server: asyncio.Server | None = None

    async def start(self, port: int, host: str | None = None) -> None:
        """Without a host it listens on all addresses, of both IP families."""
        self._server = await asyncio.start_server(self._serve, host, port)

    @property
    def port(self) -> int:
        if self._server is None:
            raise RuntimeError("the health server is not started")
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(10):
                head = await reader.readuntil(b"\r\n\r\n")
                method, _, rest = head.partition(b" ")
                path = rest.partition(b" ")[0].partition(b"?")[0].decode("ascii", "replace")
                status, kind, body = self._answer(method.decode("ascii", "replace"), path)
                raw = body.encode()
                writer.write(
                    f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: {kind}\r\n"
                    f"Content-Length: {len(raw)}\r\nConnection: close\r\n\r\n".encode()
                )
                writer.write(b"" if method == b"HEAD" else raw)
                await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    def _answer(self, method: str, path: str) -> Answer:
        if method not in ("GET", "HEAD"):
            return 405, TEXT, "only GET\n"
        if path in ("/healthz", "/livez"):
            return (200, TEXT, "ok\n") if self._live() else (503, TEXT, "not alive\n")
        if path == "/readyz":
            return (200, TEXT, "ok\n") if self._ready() else (503, TEXT, "not ready\n")
        if path == "/metrics":
            return 200, "text/plain; version=0.0.4; charset=utf-8", metrics.render(self._registry)
        return 404, TEXT, "not found\n"


async def serve_health(
    port: int, ready_fn: Callable[[], bool], *, live_fn: Callable[[], bool] = lambda: True, host: str | None = None
) -> HealthServer:
    """Start the server; close it with `close()`."""
    server = HealthServer(ready_fn, live_fn)
    await server.start(port, host)
    return server
