"""A client that tells how well an API server is reached: new connections at a steady pace, none of them tried again."""

from __future__ import annotations

import asyncio
import base64
import ssl
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import yaml

PATH = "/api/v1/namespaces/default"


@dataclass(frozen=True)
class Answer:
    at: float
    seconds: float
    error: str = ""


@dataclass
class Answers:
    """What came of every connection, by the time it was begun."""

    found: list[Answer] = field(default_factory=list)

    def failed(self) -> list[Answer]:
        return [answer for answer in self.found if answer.error]

    @property
    def share(self) -> float:
        return 1 - len(self.failed()) / len(self.found)

    def last_failure(self, since: float) -> float:
        """How long after a moment the last connection failed; 0 when none did."""
        return max((answer.at - since for answer in self.failed() if answer.at >= since), default=0.0)

    def table(self, since: float) -> str:
        failed = self.failed()
        kinds = sorted({answer.error for answer in failed})
        slow = sorted(answer.seconds for answer in self.found if not answer.error)
        return (
            f"{len(self.found)} connections, {len(failed)} failed ({', '.join(kinds) or 'none'}), "
            f"{self.share:.2%} answered; last failure {self.last_failure(since):.1f} s after; "
            f"answers: median {slow[len(slow) // 2] * 1000:.0f} ms, "
            f"99 of 100 within {slow[len(slow) * 99 // 100] * 1000:.0f} ms"
        )


class Once(Protocol):
    """Whoever asks once."""

    async def once(self) -> Answer: ...


class Asking:
    """One new TLS connection and one request each time; `address` is asked instead of a resolver."""

    def __init__(self, kubeconfig: Path, address: str = "", path: str = PATH, limit: float = 1.0) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        where = urlsplit(cluster["server"])
        self.host, self.port = str(where.hostname), where.port or 443
        self.address, self.path, self.limit = address or self.host, path, limit
        self.trust = ssl.create_default_context(cadata=_text(cluster["certificate-authority-data"]))
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
            pair.write(_text(user["client-certificate-data"]) + "\n" + _text(user["client-key-data"]))
            pair.flush()
            self.trust.load_cert_chain(pair.name)

    async def once(self) -> Answer:
        began = time.monotonic()
        error = ""
        try:
            async with asyncio.timeout(self.limit):
                error = await self._ask()
        except TimeoutError:
            error = "no answer in time"
        except (OSError, ssl.SSLError) as refused:
            error = type(refused).__name__
        return Answer(began, time.monotonic() - began, error)

    async def _ask(self) -> str:
        reader, writer = await asyncio.open_connection(
            self.address, self.port, ssl=self.trust, server_hostname=self.host
        )
        try:
            writer.write(f"GET {self.path} HTTP/1.1\r\nHost: {self.host}\r\nConnection: close\r\n\r\n".encode())
            status = (await reader.readline()).split()
            return "" if status[1:2] == [b"200"] else f"status {status[1].decode() if status[1:] else 'missing'}"
        finally:
            writer.transport.abort()


@asynccontextmanager
async def steadily(asking: Once, each_second: int = 20) -> AsyncIterator[Answers]:
    """Asks at that pace, however long answers take, until the block ends; then waits for those under way."""
    answers = Answers()
    stopping = asyncio.Event()
    running: set[asyncio.Task[Answer]] = set()

    def done(task: asyncio.Task[Answer]) -> None:
        running.discard(task)
        answers.found.append(task.result())

    async def pace() -> None:
        due = time.monotonic()
        while not stopping.is_set():
            task = asyncio.create_task(asking.once())
            running.add(task)
            task.add_done_callback(done)
            due += 1 / each_second
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    pacing = asyncio.create_task(pace())
    try:
        yield answers
    finally:
        stopping.set()
        await pacing
        if running:
            await asyncio.wait(running)


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode()
