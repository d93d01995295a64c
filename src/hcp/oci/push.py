"""Pushing finished layouts to a registry: what is there already is not sent again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from yarl import URL

from hcp.oci.address_policy import AddressPolicy
from hcp.oci.auth import Auths
from hcp.oci.reference import Reference, is_digest
from hcp.oci.requests import Requests
from hcp.oci.transport import RegistryTransport
from hcp.oci.trust import Trust
from hcp.oci.upload import Blob, Upload
from hcp.oci.writer_layout import DOCKER_MANIFEST_TYPE, MANIFEST_TYPE, Layout, read_layout

T = TypeVar("T")
_ACCEPT = {"Accept": f"{MANIFEST_TYPE}, {DOCKER_MANIFEST_TYPE}"}


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All at once; when one fails the others are ended before its error goes on."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _nobody(_: int) -> None:
    return


class Pusher:
    """Pushes images to one registry. A blob that another repository of it holds is mounted instead of uploaded."""

    def __init__(
        self,
        registry_url: str,
        *,
        ca_pem: bytes | None = None,
        auths: Auths | None = None,
        uploads: int = 4,
        socket: str | None = None,
        trust_env: bool = False,
        told: Callable[[int], None] = _nobody,
    ) -> None:
        """`http://` declares a registry without TLS; `socket`: a Unix socket where it listens, whatever the URL names.

        `told` hears of bytes as they go out; those of a broken upload may be told twice.
        """
        url = URL(registry_url)
        self.registry = url.authority
        insecure = frozenset({self.registry} if url.scheme == "http" else ())
        trust = Trust(ca_pem)
        self._transport = RegistryTransport(
            auths or Auths(None), trust, AddressPolicy(insecure=insecure), trust_env=trust_env, socket=socket
        )
        self._requests = Requests(self._transport)
        self._held_by: dict[str, str] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._slots = asyncio.Semaphore(uploads)
        self._told = told
        self.sent_bytes = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.close()

    @property
    def requests(self) -> dict[str, int]:
        """How many requests were sent, by method."""
        return dict(self._requests.count)

    async def push(
        self, layout_dir: Path, repository: str, *, tag: str | None = None, more_tags: Iterable[str] = ()
    ) -> str:
        """Push the image of a layout and return its digest. Tags name it besides the digest."""
        layout = read_layout(layout_dir)
        ref = self._ref(repository)
        tags = [*([tag] if tag else []), *more_tags]
        if await self._digest(ref, layout.digest) is None:
            blobs = [Blob(str(one["digest"]), int(one["size"]), layout.blob(one["digest"])) for one in layout.blobs]
            await together(self._blob(ref, blob) for blob in blobs)
            raw = layout.blob(layout.digest).read_bytes()
            for reference in tags or [layout.digest]:
                await self.put_manifest(repository, reference, raw, _kind(layout))
            return layout.digest
        for blob in layout.blobs:
            self._held_by.setdefault(str(blob["digest"]), repository)
        for reference in tags:
            if await self._digest(ref, reference) != layout.digest:
                raw = layout.blob(layout.digest).read_bytes()
                await self.put_manifest(repository, reference, raw, _kind(layout))
        return layout.digest

    async def put_blob(self, repository: str, data: bytes) -> dict[str, Any]:
        """A small blob out of memory; gives what a manifest says of it."""
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        await self._blob(self._ref(repository), Blob(digest, len(data), data))
        return {"digest": digest, "size": len(data)}

    async def put_manifest(self, repository: str, reference: str, raw: bytes, media_type: str) -> None:
        ref = self._ref(repository)

        async def put() -> None:
            headers = {"Content-Type": media_type, "Content-Length": str(len(raw))}
            place = f"manifests/{reference}"
            async with self._requests.once(ref, "PUT", place, 200, 201, headers=headers, body=lambda: raw):
                pass

        await self._requests.repeated(ref, put)

    def _ref(self, repository: str) -> Reference:
        return Reference(self.registry, repository)

    async def _digest(self, ref: Reference, reference: str) -> str | None:
        """What a tag or digest stands for in the registry; a registry that does not say counts as having nothing."""

        async def ask() -> str | None:
            place = f"manifests/{reference}"
            async with self._requests.once(ref, "HEAD", place, 200, 404, headers=_ACCEPT) as answer:
                if answer.status == 404:
                    return None
                return reference if is_digest(reference) else answer.headers.get("Docker-Content-Digest")

        return await self._requests.repeated(ref, ask)

    async def _blob(self, ref: Reference, blob: Blob) -> None:
        lock = self._locks.setdefault(blob.digest, asyncio.Lock())
        async with lock, self._slots:
            upload = Upload(self._requests, ref, blob, self._told)
            holder = self._held_by.get(blob.digest)
            if not await upload.exists() and not (holder and await upload.mount(holder)):
                await upload.send()
                self.sent_bytes += blob.size
            self._held_by.setdefault(blob.digest, ref.repository)


def _kind(layout: Layout) -> str:
    """What the manifest says of itself; official images may have Docker's older form, byte by byte."""
    return str(layout.manifest.get("mediaType") or MANIFEST_TYPE)
