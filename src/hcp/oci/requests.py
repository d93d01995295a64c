"""Requests of somebody who pushes: tried again when the registry is busy or the line breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

import aiohttp
from yarl import URL

from hcp.oci import push_errors
from hcp.oci.errors import ImageError, RegistryUnreachable
from hcp.oci.reference import Reference
from hcp.oci.transport import Body, RegistryTransport

T = TypeVar("T")
TRIES = 6
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
BUSY = (408, 429, 500, 502, 503, 504)


class Interrupted(Exception):
    """The line broke or the registry is busy: worth another try."""

    def __init__(self, cause: str, pause: float = 0.0) -> None:
        super().__init__(cause)
        self.pause = pause


class Requests:
    """Requests to one registry. One that never answered is not asked again."""

    def __init__(self, transport: RegistryTransport) -> None:
        self._transport = transport
        self._answered = False
        # By method, for whoever wants to know what a run cost.
        self.count: dict[str, int] = {}

    async def repeated(self, ref: Reference, attempt: Callable[[], Awaitable[T]]) -> T:
        """The first answer that is one; pauses grow, or are as long as the registry asks for."""
        pause = FIRST_PAUSE
        for number in range(1, TRIES + 1):
            try:
                return await attempt()
            except Interrupted as error:
                if number == TRIES:
                    raise push_errors.lasting(ref, str(error), TRIES) from error
                await asyncio.sleep(min(error.pause or pause, LONGEST_PAUSE))
                pause *= 2
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def once(
        self,
        ref: Reference,
        method: str,
        place: str | URL,
        *accepted: int,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request; answers other than the accepted ones are raised as what they mean."""
        self.count[method] = self.count.get(method, 0) + 1
        url = self._transport.url(ref, place) if isinstance(place, str) else place
        try:
            async with self._transport.send(ref, method, url, headers, body) as answer:
                self._answered = True
                if answer.status not in accepted:
                    await self._refuse(ref, method, answer)
                yield answer
        except RegistryUnreachable as error:
            if self._answered:
                raise Interrupted(error.cause or str(error)) from error
            raise push_errors.failed(ref, error, with_login=self._transport.has_login(ref)) from error
        except ImageError as error:
            raise push_errors.failed(ref, error, with_login=self._transport.has_login(ref)) from error

    async def _refuse(self, ref: Reference, method: str, answer: aiohttp.ClientResponse) -> None:
        text = (await answer.content.read(300)).decode(errors="replace").strip()
        if answer.status in BUSY:
            after = answer.headers.get("Retry-After", "")
            raise Interrupted(f"{answer.status} {text}".strip(), float(after) if after.isdigit() else 0.0)
        with_login = self._transport.has_login(ref)
        raise push_errors.refused(ref, method, answer.url.path, answer.status, text, with_login=with_login)
