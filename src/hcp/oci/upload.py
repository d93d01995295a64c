"""Sending one blob: mounted where another repository has it, continued where the line broke."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import aiohttp
from yarl import URL

from hcp.oci import push_errors
from hcp.oci.reference import Reference
from hcp.oci.requests import FIRST_PAUSE, LONGEST_PAUSE, TRIES, Interrupted, Requests

_CHUNK = 1 << 20
# Up to this size one request carries the whole blob: sending it again costs less than asking where it broke.
_SMALL = 1 << 20
_OCTETS = {"Content-Type": "application/octet-stream"}
# What a registry may answer to a mount that it cannot or will not make; 202 is the ordinary way to say so.
_NO_MOUNT = (400, 401, 403, 404, 405)


class Content(Protocol):
    """Bytes that come from elsewhere. `failure`: why they cannot be had, once that is known."""

    @property
    def failure(self) -> Exception | None: ...

    def read(self, start: int) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True)
class Blob:
    """Bytes in a file, in memory or elsewhere, named by their digest."""

    digest: str
    size: int
    content: Path | bytes | Content

    @property
    def is_missing(self) -> bool:
        """Known to be nowhere but, perhaps, in the registry itself."""
        return not isinstance(self.content, Path | bytes) and self.content.failure is not None

    def check(self) -> None:
        """Raises what keeps the bytes from coming: sending them again would not help."""
        failure = None if isinstance(self.content, Path | bytes) else self.content.failure
        if failure is not None:
            raise failure

    async def read(self, start: int, told: Callable[[int], None]) -> AsyncIterator[bytes]:
        if isinstance(self.content, bytes):
            told(len(self.content) - start)
            yield self.content[start:]
            return
        if not isinstance(self.content, Path):
            async for data in self.content.read(start):
                told(len(data))
                yield data
            return
        with await asyncio.to_thread(self.content.open, "rb") as file:
            file.seek(start)
            while data := await asyncio.to_thread(file.read, _CHUNK):
                told(len(data))
                yield data


@dataclass
class Upload:
    """One blob on its way into one repository. `sent` hears of bytes as they go out."""

    requests: Requests
    ref: Reference
    blob: Blob
    sent: Callable[[int], None]
    # Where the next bytes go, and how many have arrived.
    place: URL | None = None
    arrived: int = 0

    async def exists(self) -> bool:
        async def ask() -> bool:
            async with self.requests.once(self.ref, "HEAD", f"blobs/{self.blob.digest}", 200, 404) as answer:
                return answer.status == 200

        return await self.requests.repeated(self.ref, ask)

    async def mount(self, source: str) -> bool:
        """Whether the registry took the blob out of another repository of its own."""

        async def ask() -> bool:
            start = f"blobs/uploads/?mount={self.blob.digest}&from={source}"
            async with self.requests.once(self.ref, "POST", start, 201, 202, *_NO_MOUNT) as answer:
                if answer.status == 202:
                    self._goes_on(answer)
                return answer.status == 201

        return await self.requests.repeated(self.ref, ask)

    async def send(self) -> None:
        """All of it; each break is continued from what has arrived, and only standing still ends it."""
        self.blob.check()
        tries, pause = 0, FIRST_PAUSE
        while True:
            before = self.arrived
            try:
                await self._attempt()
                return
            except Interrupted as error:
                self.blob.check()
                try:
                    await self._find_place()
                except Interrupted:
                    self.place = None
                if self.place is None and await self.exists():
                    return  # only the answer was lost
                if self.arrived > before:
                    tries, pause = 0, FIRST_PAUSE
                    continue
                tries += 1
                if tries == TRIES:
                    raise push_errors.lasting(self.ref, str(error), TRIES) from error
                await asyncio.sleep(min(error.pause or pause, LONGEST_PAUSE))
                pause *= 2

    async def _attempt(self) -> None:
        if self.place is None:
            self.arrived = 0
            async with self.requests.once(self.ref, "POST", "blobs/uploads/", 202) as answer:
                self._goes_on(answer)
        assert self.place is not None
        if self.blob.size <= _SMALL:
            self.arrived = 0
            await self._finish(self.place, self.blob.size)
            return
        if self.arrived < self.blob.size:
            # Without Content-Range the first time, as the usual tools do: not every registry knows it.
            headers = self._headers(self.blob.size - self.arrived)
            if self.arrived:
                headers["Content-Range"] = f"{self.arrived}-{self.blob.size - 1}"
            async with self.requests.once(
                self.ref, "PATCH", self.place, 202, 404, 416, headers=headers, body=self._rest
            ) as answer:
                if answer.status != 202:
                    self._forget(f"{answer.status}: it does not know the upload any more")
                self._goes_on(answer)
            self.arrived = self.blob.size
        await self._finish(self.place, 0)

    async def _finish(self, place: URL, size: int) -> None:
        whole = place.update_query({"digest": self.blob.digest})
        body = self._rest if size else None
        async with self.requests.once(
            self.ref, "PUT", whole, 201, 204, 404, 416, headers=self._headers(size), body=body
        ) as answer:
            if answer.status in (404, 416):
                self._forget(f"{answer.status}: it does not know the upload any more")

    async def _find_place(self) -> None:
        """Ask the registry how much of a broken upload it has."""
        if self.place is None or self.blob.size <= _SMALL:
            self.place = None
            return
        async with self.requests.once(self.ref, "GET", self.place, 204, 200, 404, 405, 400) as answer:
            if answer.status in (204, 200):
                self._goes_on(answer)
                last = answer.headers.get("Range", "").rpartition("-")[2]
                # `0-0` is also how a registry says that nothing has arrived.
                self.arrived = int(last) + 1 if last.isdigit() and int(last) > 0 else 0
            else:
                self.place = None
        if self.arrived > self.blob.size:
            self.place = None

    def _forget(self, cause: str) -> None:
        self.place, self.arrived = None, 0
        raise Interrupted(cause)

    def _goes_on(self, answer: aiohttp.ClientResponse) -> None:
        if "Location" in answer.headers:
            self.place = answer.url.join(URL(answer.headers["Location"], encoded=True))

    def _headers(self, size: int) -> dict[str, str]:
        return {**_OCTETS, "Content-Length": str(size)}

    def _rest(self) -> AsyncIterator[bytes]:
        return self.blob.read(self.arrived, self.sent)
