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
from hcp.oci.image import Image, from_layout
from hcp.oci.reference import Reference, is_digest
from hcp.oci.requests import Requests
from hcp.oci.transport import RegistryTransport
from hcp.oci.trust import Trust
from hcp.oci.upload import Blob, Upload
from hcp.oci.writer_layout import DOCKER_INDEX_TYPE, DOCKER_MANIFEST_TYPE, INDEX_TYPE, MANIFEST_TYPE

T = TypeVar("T")
_ACCEPT = {"Accept": f"{MANIFEST_TYPE}, {DOCKER_MANIFEST_TYPE}, {INDEX_TYPE}, {DOCKER_INDEX_TYPE}"}


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
        trust: Trust | None = None,
        told: Callable[[int], None] = _nobody,
    ) -> None:
        """`http://` declares a registry without TLS; `socket`: a Unix socket where it listens, whatever the URL names.

        `told` hears of bytes as they go out; those of a broken upload may be told twice.
        """
        url = URL(registry_url)
        self.registry = url.authority
        insecure = frozenset({self.registry} if url.scheme == "http" else ())
        self._transport = RegistryTransport(
            auths or Auths(None),
            trust or Trust(ca_pem),
            AddressPolicy(insecure=insecure),
            trust_env=trust_env,
            socket=socket,
        )
        self._requests = Requests(self._transport)
        # By digest of a blob: the repositories that have it, or are said to.
        self._held_by: dict[str, dict[str, bool]] = {}
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
        image = from_layout(layout_dir)
        await self.push_image(image, repository, [*([tag] if tag else []), *more_tags])
        return image.digest

    async def push_image(self, image: Image, repository: str, tags: Iterable[str] = ()) -> None:
        """Bring an image from wherever it is; parts first, then what names them."""
        ref, tags = self._ref(repository), list(tags)
        if await self._digest(ref, image.digest) is None:
            await together(self.push_image(child, repository) for child in image.children)
            await together(self._blob(ref, blob) for blob in image.blobs)
            for reference in tags or [image.digest]:
                await self.put_manifest(repository, reference, image.raw, image.media_type)
            return
        self.know(image, repository)
        for reference in tags:
            if await self._digest(ref, reference) != image.digest:
                await self.put_manifest(repository, reference, image.raw, image.media_type)

    def know(self, image: Image, repository: str, *, sure: bool = True) -> None:
        """A repository that has the blobs of an image, or should have: others can mount them out of it."""
        for blob in image.all_blobs:
            holders = self._held_by.setdefault(blob.digest, {})
            holders[repository] = holders.get(repository, False) or sure

    async def digest(self, repository: str, reference: str) -> str | None:
        """What a tag or digest stands for in the registry now."""
        return await self._digest(self._ref(repository), reference)

    async def delete(self, repository: str, reference: str) -> bool:
        """Remove a manifest by digest, or a tag; False when there is none, or the registry knows no such thing."""
        ref = self._ref(repository)

        async def ask() -> bool:
            place = f"manifests/{reference}"
            accepted = (200, 202, 404) if is_digest(reference) else (200, 202, 404, 400, 405)
            async with self._requests.once(ref, "DELETE", place, *accepted) as answer:
                return answer.status in (200, 202)

        return await self._requests.repeated(ref, ask)

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
            holders = self._held_by.setdefault(blob.digest, {})
            if holders.get(ref.repository):
                return
            upload = Upload(self._requests, ref, blob, self._told)
            if not await upload.exists() and not await self._mounted(upload, holders):
                await upload.send()
                self.sent_bytes += blob.size
            holders[ref.repository] = True

    async def _mounted(self, upload: Upload, holders: dict[str, bool]) -> bool:
        """Out of one that surely has it; what is only said to have it is asked when the bytes are not at hand."""
        sure = [repository for repository, known in holders.items() if known]
        said = [] if sure or not upload.blob.is_missing else list(holders)
        for repository in sure[:1] or said:
            if await upload.mount(repository):
                return True
        return False
