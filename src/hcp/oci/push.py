"""Pushing finished layouts to a registry over HTTPS: what is there already is not sent again."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
from yarl import URL

from hcp.errors import HcpError
from hcp.oci.writer_layout import DOCKER_MANIFEST_TYPE, MANIFEST_TYPE, Layout, read_layout

_CHUNK = 1 << 20


_ACCEPT = f"{MANIFEST_TYPE}, {DOCKER_MANIFEST_TYPE}"


class Pusher:
    """Pushes layouts to one registry. A blob that another repository of it holds is mounted instead of uploaded."""

    def __init__(
        self, registry_url: str, *, ca_pem: bytes | None = None, uploads: int = 4, socket: str | None = None
    ) -> None:
        """`socket`: a Unix socket where the registry listens, whatever host the URL names."""
        self._base = URL(registry_url)
        self._socket = socket
        self._tls: ssl.SSLContext | bool = True
        if ca_pem is not None:
            self._tls = ssl.create_default_context(cadata=ca_pem.decode())
        self._held_by: dict[str, str] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._slots = asyncio.Semaphore(uploads)
        self._session: aiohttp.ClientSession | None = None
        self.sent_bytes = 0

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=300)
        connector: aiohttp.BaseConnector = aiohttp.TCPConnector(ssl=self._tls)
        if self._socket is not None:
            connector = aiohttp.UnixConnector(self._socket)
        self._session = aiohttp.ClientSession(timeout=timeout, connector=connector)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def push(self, layout_dir: Path, repository: str, *, tag: str | None = None) -> str:
        """Push the image of a layout and return its digest. `tag` names it besides the digest."""
        layout = read_layout(layout_dir)
        try:
            if tag is None and await self._has_manifest(repository, layout.digest):
                self._remember(layout, repository)
                return layout.digest
            await asyncio.gather(*(self._blob(layout, repository, item) for item in layout.blobs))
            await self._manifest(layout, repository, tag or layout.digest)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise HcpError(
                f"pushing {repository} to the registry {self._base.authority} failed",
                cause=str(error) or type(error).__name__,
                hint="check that the registry runs and that its certificate is the one given",
            ) from error
        return layout.digest

    def _url(self, repository: str, rest: str) -> URL:
        return self._base / "v2" / repository / rest

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("use Pusher in an async with block")
        return self._session

    def _remember(self, layout: Layout, repository: str) -> None:
        for item in layout.blobs:
            self._held_by.setdefault(item["digest"], repository)

    async def _has_manifest(self, repository: str, digest: str) -> bool:
        url = self._url(repository, f"manifests/{digest}")
        async with self._open_session().head(url, headers={"Accept": _ACCEPT}) as answer:
            return answer.status == 200

    async def _blob(self, layout: Layout, repository: str, item: dict[str, Any]) -> None:
        digest = str(item["digest"])
        lock = self._locks.setdefault(digest, asyncio.Lock())
        async with lock, self._slots:
            async with self._open_session().head(self._url(repository, f"blobs/{digest}")) as answer:
                present = answer.status == 200
            if not present:
                await self._upload(repository, digest, layout.blob(digest), int(item["size"]))
            self._held_by.setdefault(digest, repository)

    async def _upload(self, repository: str, digest: str, path: Path, size: int) -> None:
        query = {"mount": digest, "from": self._held_by[digest]} if digest in self._held_by else {}
        start = self._url(repository, "blobs/uploads/").with_query(query)
        async with self._open_session().post(start) as answer:
            await _expect(answer, 201, 202)
            if answer.status == 201:
                return
            place = start.join(URL(answer.headers["Location"]))
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        place = place.update_query({"digest": digest})
        async with self._open_session().put(place, data=_chunks(path), headers=headers) as answer:
            await _expect(answer, 201)
        self.sent_bytes += size

    async def _manifest(self, layout: Layout, repository: str, reference: str) -> None:
        raw = layout.blob(layout.digest).read_bytes()
        url = self._url(repository, f"manifests/{reference}")
        async with self._open_session().put(url, data=raw, headers={"Content-Type": _kind(layout)}) as answer:
            await _expect(answer, 201)


def _kind(layout: Layout) -> str:
    """What the manifest says of itself; official images may have Docker's older form, byte by byte."""
    return str(layout.manifest.get("mediaType") or MANIFEST_TYPE)


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while data := await asyncio.to_thread(file.read, _CHUNK):
            yield data


async def _expect(answer: aiohttp.ClientResponse, *statuses: int) -> None:
    if answer.status in statuses:
        return
    text = (await answer.text())[:300]
    raise HcpError(f"the registry refused {answer.method} {answer.url.path}", cause=f"{answer.status} {text}")
