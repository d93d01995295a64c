"""Hosts of clusters that sleep, and the connections that wait for them.

HAProxy announces each such connection on a Unix socket, by its host, and waits for a line. The host's Route is told
that it was asked for; when HAProxy knows pods of it, all who wait go on. What a stranger can keep here is bounded, for
each host and in all.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hcp.api import names
from hcp.api.paths import annotations_of
from hcp.router.claims import Route
from hcp.router.waiting import HOLD
from hcp.runtime import metrics

# Connections that wait: more are refused, and the cluster wakes all the same. Who hangs up is counted on: HAProxy does
# not look at a connection while its script waits.
PER_HOST, IN_ALL = 64, 512
MAX_LINE = 1024
ASKED = metrics.Counter(
    "hcp_router_sleeping_connections_total",
    "Connections to hosted APIs that sleep, by what became of them.",
    ["result"],
)
HELD = metrics.Gauge("hcp_router_held_connections", "Connections that wait for a hosted API to wake up.")


def sleeps_since(route: Route) -> str:
    """The operator's mark; empty where no request shall wake anything."""
    return str(annotations_of(route).get(names.MARK_SLEEPS_SINCE) or "")


@dataclass(frozen=True, slots=True)
class _Sleeper:
    key: str
    since: str


class Sleepers:
    """`ask` is called with the key of a Route and its mark, for every connection: it writes what is not written yet."""

    def __init__(self, ask: Callable[[str, str], None], *, hold: float = HOLD) -> None:
        self._ask = ask
        self._hold = hold
        self._asleep: dict[str, _Sleeper] = {}
        self._hosts: dict[str, str] = {}
        # Awake or gone, which HAProxy has not been told yet.
        self._leaving: set[str] = set()
        self._awake: dict[str, asyncio.Event] = {}
        self._waiting: dict[str, int] = {}
        self._server: asyncio.Server | None = None

    @property
    def held(self) -> int:
        return sum(self._waiting.values())

    async def start(self, path: Path) -> None:
        self._server = await asyncio.start_unix_server(self._serve, path, limit=MAX_LINE)

    async def stop(self) -> None:
        """Whoever waits is let go."""
        for event in self._awake.values():
            event.set()
        if self._server is not None:
            self._server.close()

    def put(self, key: str, host: str, since: str) -> None:
        """A Route sleeps with this host, or, without one, does not."""
        old = self._hosts.pop(key, "")
        if old and self._asleep[old].key == key:
            del self._asleep[old]
            self._leaving.add(old)
        if host:
            self._hosts[key] = host
            self._asleep[host] = _Sleeper(key, since)

    def settle(self) -> None:
        """HAProxy knows by now what was put here: who waits for a host that does not sleep any more looks again."""
        for host in [one for one in self._awake if one not in self._asleep]:
            self._awake.pop(host).set()
        self._leaving.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError):
            host = (await reader.readline()).decode("ascii").strip()
            await self._wait(host, reader)
            writer.write(b"\n")
            await writer.drain()
        writer.close()

    async def _wait(self, host: str, reader: asyncio.StreamReader) -> None:
        sleeper = self._asleep.get(host)
        if sleeper is not None:
            self._ask(sleeper.key, sleeper.since)
        elif host not in self._leaving:
            return  # awake since HAProxy looked
        if self._waiting.get(host, 0) >= PER_HOST or self.held >= IN_ALL:
            ASKED.inc(result="refused")
            return
        self._waiting[host] = self._waiting.get(host, 0) + 1
        HELD.set(self.held)
        try:
            result = await self._until_awake(host, reader)
        finally:
            self._waiting[host] -= 1
            if not self._waiting[host]:
                del self._waiting[host]
            HELD.set(self.held)
        ASKED.inc(result=result)

    async def _until_awake(self, host: str, reader: asyncio.StreamReader) -> str:
        """Until it is awake, HAProxy has ended, or the time is over."""
        event = self._awake.setdefault(host, asyncio.Event())
        awake, hung_up = asyncio.ensure_future(event.wait()), asyncio.ensure_future(reader.read(1))
        try:
            done, _ = await asyncio.wait((awake, hung_up), timeout=self._hold, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (awake, hung_up):
                task.cancel()
            await asyncio.gather(awake, hung_up, return_exceptions=True)
        return "awake" if awake in done else "left" if hung_up in done else "late"
