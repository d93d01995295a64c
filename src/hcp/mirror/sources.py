"""Reading images from the registries they come from, patiently: lines break and registries are busy."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

from hcp.errors import HcpError
from hcp.oci import image, signature
from hcp.oci.client import RegistryClient
from hcp.oci.errors import BrokenImage, RegistryUnreachable, UnknownImage, broken
from hcp.oci.image import Image
from hcp.oci.push import together
from hcp.oci.reference import Reference

T = TypeVar("T")
LONGEST_PAUSE = 30.0
# Questions at once: each has a connection, and making those costs more than asking.
QUESTIONS = 16


class Sources:
    """Images by reference. One client per registry, since each has its own login."""

    def __init__(
        self, client_for: Callable[[Reference], RegistryClient], *, retries: int = 2, pause: float = 1.0
    ) -> None:
        self._client_for = client_for
        self._clients: dict[str, RegistryClient] = {}
        self._retries = retries
        self._pause = pause
        self._questions = asyncio.Semaphore(QUESTIONS)
        self.read_bytes = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients.values():
            await client.close()

    def client(self, ref: Reference) -> RegistryClient:
        if ref.registry not in self._clients:
            self._clients[ref.registry] = self._client_for(ref)
        return self._clients[ref.registry]

    async def patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """An answer, asked for again while the registry cannot be reached or is busy."""
        pause = self._pause
        for left in range(self._retries, -1, -1):
            try:
                return await ask()
            except RegistryUnreachable:
                if not left:
                    raise
            await asyncio.sleep(min(pause, LONGEST_PAUSE))
            pause *= 2
        raise AssertionError("unreachable")

    async def digest(self, ref: Reference) -> str:
        async def ask() -> str:
            async with self._questions:
                return await self.client(ref).digest(ref)

        return await self.patiently(ask)

    async def image(self, ref: Reference) -> Image:
        """All of an image, those for other platforms too; its blobs are read when they are sent."""
        place, raw = await self.patiently(lambda: self.client(ref).exact(ref))
        body = image.document(str(ref), raw)
        children = await together(self.image(ref.with_digest(digest)) for digest in image.children_of(str(ref), body))
        return image.made_of(str(ref), raw, lambda digest, size: Remote(self, place, digest, size), tuple(children))

    async def signature(self, ref: Reference, digest: str) -> tuple[Reference, str] | None:
        """The image with cosign's signatures beside an image, if there is one."""
        beside = signature.place(ref, digest)
        try:
            return beside, await self.digest(beside)
        except (UnknownImage, BrokenImage):
            return None


class Remote:
    """A blob in a registry. A body that ends early is continued; what arrives is checked against its digest."""

    def __init__(self, sources: Sources, place: Reference, digest: str, size: int) -> None:
        self._sources = sources
        self._place = place
        self._digest = digest
        self._size = size
        self.failure: Exception | None = None

    async def read(self, start: int) -> AsyncIterator[bytes]:
        try:
            async for data in self._read(start):
                yield data
        except HcpError as error:
            self.failure = error
            raise

    async def _read(self, start: int) -> AsyncIterator[bytes]:
        client = self._sources.client(self._place)
        algorithm, _, wanted = self._digest.partition(":")
        hasher = hashlib.new(algorithm)
        at, tries, pause = start, self._sources._retries, self._sources._pause
        while at < self._size:
            before = at
            try:
                async with contextlib.aclosing(client.stream_at(self._place, self._digest, at)) as chunks:
                    async for chunk in chunks:
                        at += len(chunk)
                        if at > self._size:
                            raise broken(str(self._place), f"{self._digest} is longer than its manifest says")
                        hasher.update(chunk)
                        self._sources.read_bytes += len(chunk)
                        yield chunk
                if at == before:
                    raise broken(str(self._place), f"{self._digest} is shorter than its manifest says")
            except RegistryUnreachable:
                if at == before:
                    tries -= 1
                    if tries < 0:
                        raise
                    await asyncio.sleep(min(pause, LONGEST_PAUSE))
                    pause *= 2
                else:
                    tries, pause = self._sources._retries, self._sources._pause
        if start == 0 and hasher.hexdigest() != wanted:
            found = f"{algorithm}:{hasher.hexdigest()}"
            raise broken(str(self._place), f"a layer has the digest {found}, not {self._digest}")
