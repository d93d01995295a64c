"""Reading images from registries, through mirrors, checked by digest."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar

from hcp.oci import errors, layers, limits
from hcp.oci.address_policy import OPEN, AddressPolicy
from hcp.oci.auth import Auths
from hcp.oci.cache import LruCache
from hcp.oci.mirrors import Mirror, candidates
from hcp.oci.reference import Reference, is_digest
from hcp.oci.transport import RegistryTransport
from hcp.oci.trust import Trust
from hcp.oci.writer_layout import DOCKER_INDEX_TYPE, DOCKER_MANIFEST_TYPE, INDEX_TYPE, MANIFEST_TYPE

T = TypeVar("T")
INDEX_TYPES = frozenset({INDEX_TYPE, DOCKER_INDEX_TYPE})
MANIFEST_TYPES = (MANIFEST_TYPE, DOCKER_MANIFEST_TYPE)
ACCEPT = ", ".join((*MANIFEST_TYPES, *sorted(INDEX_TYPES)))
# Of each kind of thing that is remembered; one client is kept per pull secret.
CACHE_BYTES = 8 << 20
# How long a tag is believed to mean the same image.
TAG_SECONDS = 300.0
RETRIES = 3
TAGS_PAGE, MAX_TAGS = 1000, 100_000


@dataclass(frozen=True)
class Manifest:
    """An image manifest, the digest it has, and the place it was found at."""

    digest: str
    body: Mapping[str, Any]
    found_at: Reference
    # As it was sent, in bytes.
    size: int = 0

    @property
    def layers(self) -> list[Mapping[str, Any]]:
        return list(self.body.get("layers") or ())


class RegistryClient:
    """Reads images with one pull secret, one set of mirrors and one set of trusted CAs."""

    def __init__(
        self,
        auths: Mapping[str, Any] | Auths | None = None,
        ca_pem: str | bytes | None = None,
        mirrors: Iterable[Mirror] = (),
        *,
        trust: Trust | None = None,
        plain_http: Collection[str] = (),
        address_policy: AddressPolicy = OPEN,
        platform: tuple[str, str] = ("linux", "amd64"),
        trust_env: bool = False,
    ) -> None:
        """`trust` replaces `ca_pem` when registries have their own CAs; `plain_http` names registries without TLS.

        `address_policy` says where connections may go; without one, anywhere. `trust_env`: through the environment's
        proxy, after what `way_out` asks beforehand.
        """
        known = auths if isinstance(auths, Auths) else Auths(auths)
        address_policy = replace(address_policy, insecure=address_policy.insecure | frozenset(plain_http))
        self._transport = RegistryTransport(known, trust or Trust(ca_pem), address_policy, trust_env=trust_env)
        self._mirrors = tuple(mirrors)
        self._platform = platform
        self._blobs: LruCache[bytes] = LruCache(CACHE_BYTES, len)
        self._manifests: LruCache[Manifest] = LruCache(CACHE_BYTES, lambda known: known.size)
        self._raw: LruCache[tuple[Reference, bytes]] = LruCache(CACHE_BYTES, lambda known: len(known[1]))
        self._tags: LruCache[tuple[float, str]] = LruCache(512, lambda _: 1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def close_when_idle(self) -> None:
        """Close as soon as nobody reads with it any more."""
        await self._transport.close_when_idle()

    async def digest(self, ref: Reference | str) -> str:
        """The digest a reference means, of the list if it is one for many platforms; tags are remembered shortly."""
        ref = _parse(ref)
        if ref.digest:
            return ref.digest
        known = self._tags.get(str(ref))
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        place, raw = await self._anywhere(ref, self._raw_manifest)
        digest = _sha256(raw)
        self._raw.put((ref.name, digest), (place.with_digest(digest), raw))
        self._tags.put(str(ref), (time.monotonic() + TAG_SECONDS, digest))
        return digest

    async def manifest(self, ref: Reference | str) -> Manifest:
        """The manifest for our platform; of a list the fitting entry."""
        ref = _parse(ref)
        digest = await self.digest(ref)
        known = self._manifests.get((ref.name, digest))
        if known is None:
            known = await self._manifest(ref.with_digest(digest))
            self._manifests.put((ref.name, digest), known)
        return known

    async def raw_manifest(self, ref: Reference | str) -> bytes:
        """The manifest for our platform byte by byte, as its digest was made."""
        manifest = await self.manifest(ref)
        return (await self._raw_manifest(manifest.found_at.with_digest(manifest.digest)))[1]

    async def exact(self, ref: Reference | str) -> tuple[Reference, bytes]:
        """What a reference means byte by byte, be it one image or a list for many platforms; where, by digest."""
        ref = _parse(ref)
        digest = await self.digest(ref)
        known = self._raw.get((ref.name, digest))
        if known is None:
            place, raw = await self._anywhere(ref.with_digest(digest), self._raw_manifest)
            known = (place.with_digest(digest), raw)
            self._raw.put((ref.name, digest), known)
        return known

    def stream_at(self, place: Reference, digest: str, start: int = 0) -> AsyncGenerator[bytes, None]:
        """The bytes of a blob from `start` on, unchecked, from exactly this place."""
        return self._stream(place, digest, start)

    async def tags(self, ref: Reference | str) -> list[str]:
        """All tags of a repository, asked of the source itself: mirrors need not have them."""
        ref = _parse(ref)
        found: list[str] = []
        path = f"tags/list?n={TAGS_PAGE}"
        for _ in range(MAX_TAGS // TAGS_PAGE):
            async with self._transport.get(ref, path) as response:
                try:
                    page = _json(ref, await limits.read_at_most(response.content, limits.MAX_MANIFEST))
                except limits.TooLarge as exc:
                    raise errors.broken(str(ref), f"its list of tags has {exc}") from exc
                more = response.links.get("next")
            tags = [str(tag) for tag in page.get("tags") or ()]
            found += tags
            if more is None or not tags:
                break
            path = f"tags/list?n={TAGS_PAGE}&last={tags[-1]}"
        return found

    async def config(self, ref: Reference | str) -> dict[str, Any]:
        """The image's configuration: entrypoint, labels, architecture."""
        ref = _parse(ref)
        manifest = await self.manifest(ref)
        raw = await self.blob(ref, str((manifest.body.get("config") or {}).get("digest") or ""))
        return _json(ref, raw)

    async def blob(self, ref: Reference | str, digest: str) -> bytes:
        """A small blob in memory, checked. For layers use `open_blob` or `stream`."""
        ref = _parse(ref)
        known = self._blobs.get(digest)
        if known is None:
            with await self.open_blob(ref, digest, limit=limits.MAX_SMALL_BLOB) as file:
                known = await asyncio.to_thread(file.read)
            self._blobs.put(digest, known)
        return known

    async def stream(self, ref: Reference | str, digest: str, start: int = 0) -> AsyncIterator[bytes]:
        """The bytes of a blob from `start` on, unchecked, from the place where the manifest was found."""
        place = (await self.manifest(ref)).found_at
        async for chunk in self._stream(place, digest, start):
            yield chunk

    async def open_blob(self, ref: Reference | str, digest: str, *, limit: int = limits.MAX_LAYER) -> IO[bytes]:
        """A blob as a temporary file, checked; a connection that breaks is continued where it broke."""
        ref = _parse(ref)
        file: IO[bytes] = await asyncio.to_thread(tempfile.SpooledTemporaryFile, 8 << 20)
        try:
            await self._fill(ref, digest, file, limit)
        except BaseException:
            file.close()
            raise
        return file

    async def save_blob(self, ref: Reference | str, digest: str, path: Path) -> None:
        """A blob into a file; what is already there of it is not fetched again."""
        ref = _parse(ref)
        with await asyncio.to_thread(path.open, "a+b") as file:
            await self._fill(ref, digest, file)

    async def read_files(
        self, ref: Reference | str, paths: Iterable[str], *, enough: Collection[str] = ()
    ) -> dict[str, bytes]:
        """The named files as the image has them; missing ones are missing in the answer.

        Layers are read from the top. `enough`: once these are found, files still missing are not looked for further
        down, which spares fetching a big base image for an optional file.
        """
        ref = _parse(ref)
        manifest = await self.manifest(ref)
        wanted = layers.Search(paths)
        for layer in reversed(manifest.layers):
            if wanted.complete or (enough and all(wanted.has(p) for p in enough)):
                break
            digest = str(layer.get("digest"))
            with await self.open_blob(ref, digest) as file:
                try:
                    await asyncio.to_thread(wanted.read_layer, file)
                except layers.Unreadable as exc:
                    raise errors.broken(str(ref), f"layer {digest}: {exc}") from exc
        return wanted.found

    # how

    async def _manifest(self, ref: Reference, *, listed: bool = False) -> Manifest:
        known = self._raw.get((ref.name, ref.digest))
        place, raw = known if known is not None else await self._anywhere(ref, self._raw_manifest)
        body = _json(ref, raw)
        if body.get("mediaType") in INDEX_TYPES or "manifests" in body:
            if listed:
                raise errors.broken(str(ref), "a list of images in it leads to another list")
            chosen = self._choose(ref, body)
            return await self._manifest(ref.with_digest(chosen), listed=True)
        found = body.get("layers")
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise errors.broken(str(ref), "its manifest has no layers (schema 1 images are not supported)")
        if len(found) > limits.MAX_LAYERS:
            raise errors.broken(str(ref), f"it has {len(found)} layers, {limits.MAX_LAYERS} are permitted")
        return Manifest(str(ref.digest), body, place, len(raw))

    def _choose(self, ref: Reference, index: Mapping[str, Any]) -> str:
        offered = []
        entries = index.get("manifests")
        for entry in entries if isinstance(entries, list) else ():
            platform = (entry.get("platform") if isinstance(entry, dict) else None) or {}
            if not isinstance(platform, dict):
                continue
            found = (str(platform.get("os")), str(platform.get("architecture")))
            if found == self._platform:
                digest = str(entry.get("digest"))
                if not is_digest(digest):
                    raise errors.broken(str(ref), f"its list names {digest[:100]!r}, which is no digest")
                return digest
            offered.append("/".join(found))
        raise errors.UnknownImage(
            f"The image {ref} has no variant for {'/'.join(self._platform)}",
            cause=f"it has {', '.join(offered[:10])[:300] or 'none'}",
            hint="Use an image built for this architecture.",
        )

    async def _raw_manifest(self, place: Reference) -> tuple[Reference, bytes]:
        async with self._transport.get(place, f"manifests/{place.version}", {"Accept": ACCEPT}) as response:
            if response.content_type == "text/html":  # no manifest is; a blob may be anything
                raise errors.web_page(str(place), place.host)
            try:
                raw = await limits.read_at_most(response.content, limits.MAX_MANIFEST)
            except limits.TooLarge as exc:
                raise errors.broken(str(place), f"its manifest has {exc}") from exc
        if place.digest and _sha256(raw) != place.digest:
            raise errors.broken(str(place), f"the registry sent {_sha256(raw)} instead")
        return place, raw

    async def _anywhere(self, ref: Reference, ask: Callable[[Reference], Awaitable[T]]) -> T:
        """Ask the mirrors in order, then the source; the first that has it wins."""
        tried: list[tuple[str, errors.ImageError]] = []
        for place in candidates(ref, self._mirrors):
            try:
                return await ask(place)
            except errors.ImageError as exc:
                tried.append((place.name, exc))
        raise errors.most_telling(str(ref), tried)

    async def _stream(self, place: Reference, digest: str, start: int) -> AsyncGenerator[bytes, None]:
        headers = {"Range": f"bytes={start}-"} if start else {}
        async with self._transport.get(place, f"blobs/{digest}", headers) as response:
            skip = start if start and response.status != 206 else 0
            async for chunk in response.content.iter_any():
                if skip >= len(chunk):
                    skip -= len(chunk)
                    continue
                yield chunk[skip:]
                skip = 0

    async def _append(self, source: Reference, digest: str, file: IO[bytes], hasher: Any, limit: int | None) -> None:
        async with contextlib.aclosing(self._stream(source, digest, file.tell())) as chunks:
            async for chunk in chunks:
                if limit is not None and file.tell() + len(chunk) > limit:
                    raise limits.TooLarge(limit)
                hasher.update(chunk)
                file.write(chunk)

    async def _fill(self, ref: Reference, digest: str, file: IO[bytes], limit: int | None = None) -> None:
        """Complete a file to the blob: from where the manifest was, else from the other places that may have it."""
        if not is_digest(digest):
            raise errors.broken(str(ref), f"{digest[:100]!r} is no digest")
        algorithm, _, wanted = digest.partition(":")
        hasher = hashlib.new(algorithm)
        file.seek(0)
        while chunk := await asyncio.to_thread(file.read, 1 << 20):
            hasher.update(chunk)
        place = (await self.manifest(ref)).found_at
        others = [c for c in candidates(ref, self._mirrors) if c.name != place.name]
        tried: list[tuple[str, errors.ImageError]] = []
        for source in [place] * RETRIES + others:
            if hasher.hexdigest() == wanted:
                break
            try:
                async with asyncio.timeout(limits.BLOB_SECONDS if limit is not None else None):
                    await self._append(source, digest, file, hasher, limit)
                break
            except TimeoutError as exc:
                raise errors.unreachable(str(ref), source.host, "it sends too slowly") from exc
            except limits.TooLarge as exc:
                raise errors.broken(str(ref), f"{digest} has {exc}") from exc
            except errors.ImageError as exc:
                tried.append((source.name, exc))
        else:
            raise errors.most_telling(str(ref), tried)
        if hasher.hexdigest() != wanted:
            raise errors.broken(str(ref), f"a layer has the digest {algorithm}:{hasher.hexdigest()}, not {digest}")
        file.seek(0)


def _parse(ref: Reference | str) -> Reference:
    return Reference.parse(ref) if isinstance(ref, str) else ref


def _sha256(raw: bytes) -> str:
    return "sha256:" + hashlib.sha256(raw).hexdigest()


def _json(ref: Reference, raw: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise errors.broken(str(ref), "a document in it is not JSON") from exc
    if not isinstance(parsed, dict):
        raise errors.broken(str(ref), "a document in it is no JSON object")
    return parsed
