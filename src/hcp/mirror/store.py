"""Blobs on this machine, between registries and archives: named by digest, so nothing is fetched twice."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from hcp.mirror.workspace import disk_errors
from hcp.oci.errors import broken
from hcp.oci.image import Image
from hcp.oci.push import together
from hcp.oci.upload import Blob


class BlobStore:
    def __init__(self, root: Path, *, parallel: int = 8) -> None:
        self.root = root
        self._slots = asyncio.Semaphore(parallel)
        self._locks: dict[str, asyncio.Lock] = {}
        self.fetched_bytes = 0

    def path(self, digest: str) -> Path:
        return self.root / "blobs" / digest.replace(":", "/")

    def has(self, digest: str, size: int) -> bool:
        try:
            return self.path(digest).stat().st_size == size
        except OSError:
            return False

    def has_image(self, image: Image) -> bool:
        return all(self.has(blob.digest, blob.size) for blob in image.all_blobs)

    async def take(self, image: Image) -> None:
        """All of an image: blobs first, so that a manifest that is here is whole."""
        await together(self._blob(blob) for blob in image.all_blobs)
        for one in image.manifests:
            async with self._locks.setdefault(one.digest, asyncio.Lock()):
                if not self.has(one.digest, len(one.raw)):
                    await asyncio.to_thread(self._write, one.digest, one.raw)

    async def _blob(self, blob: Blob) -> None:
        async with self._locks.setdefault(blob.digest, asyncio.Lock()), self._slots:
            if not self.has(blob.digest, blob.size):
                with disk_errors(self.root):
                    await self._fetch(blob)

    async def _fetch(self, blob: Blob) -> None:
        """What an interrupted run left of it is kept, and checked with the rest."""
        final = self.path(blob.digest)
        final.parent.mkdir(parents=True, exist_ok=True)
        part = final.with_name(f".{final.name}.part")
        algorithm, _, wanted = blob.digest.partition(":")
        with part.open("a+b") as file:
            if file.tell() > blob.size:
                file.truncate(0)
            hasher = await asyncio.to_thread(_hashed, part, algorithm)
            start = file.seek(0, 2)
            if start < blob.size:
                async for data in blob.read(start, self._count):
                    hasher.update(data)
                    file.write(data)
        if hasher.hexdigest() != wanted:
            part.unlink()
            raise broken(blob.digest, f"what arrived has the digest {algorithm}:{hasher.hexdigest()}")
        part.rename(final)

    def _count(self, count: int) -> None:
        self.fetched_bytes += count

    def _write(self, digest: str, data: bytes) -> None:
        final = self.path(digest)
        with disk_errors(self.root):
            final.parent.mkdir(parents=True, exist_ok=True)
            part = final.with_name(f".{final.name}.part")
            part.write_bytes(data)
            part.rename(final)


def _hashed(path: Path, algorithm: str) -> hashlib._Hash:
    hasher = hashlib.new(algorithm)
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            hasher.update(data)
    return hasher
