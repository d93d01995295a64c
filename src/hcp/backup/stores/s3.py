"""A bucket of an object store that speaks S3: AWS, or any other by its address.

A backup is uploaded in parts and appears when all of them are there; what breaks off is taken back.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import html
import io
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

import aiohttp
from yarl import URL

from hcp.backup import naming
from hcp.backup.naming import Name
from hcp.backup.stores import s3_signing
from hcp.backup.stores.base import CHUNK, Entry, missing
from hcp.backup.stores.s3_signing import Credentials
from hcp.errors import HcpError

# A store takes ten thousand parts: enough for 160 GB. Two parts are in memory at most.
PART = 16 * 1024**2
_ATTEMPTS = 4
_LONGEST_ANSWER = 4 * 1024**2
_LIMITS = aiohttp.ClientTimeout(total=None, connect=15, sock_read=120)


class Bucket:
    """Backups below a prefix of a bucket."""

    def __init__(
        self,
        bucket: str,
        prefix: str,
        endpoint: str,
        region: str,
        who: Credentials,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._bucket, self._prefix, self._region, self._who = bucket, prefix, region, who
        self._endpoint = endpoint or f"https://s3.{region}.amazonaws.com"
        parts = urlsplit(self._endpoint)
        if parts.scheme not in ("https", "http") or not parts.hostname or parts.path.strip("/") or parts.query:
            raise HcpError(f"{endpoint!r} is no address of an object store", hint="such as https://s3.example.com:9000")
        self._host = parts.netloc
        self._trust = trust
        self._session: aiohttp.ClientSession | None = None

    @property
    def place(self) -> str:
        return "/".join(filter(None, (f"s3://{self._bucket}", self._prefix)))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def entries(self) -> list[Entry]:
        found, token = [], ""
        prefix = f"{self._prefix}/" if self._prefix else ""
        while True:
            params = {"list-type": "2", "prefix": prefix, "delimiter": "/"}
            if token:
                params["continuation-token"] = token
            text = await self._text("GET", "", params)
            for block in re.findall("<Contents>(.*?)</Contents>", text, re.DOTALL):
                key = _tag(block, "Key")
                name = naming.from_file(key.removeprefix(prefix)) if key.startswith(prefix) else None
                if name is not None and _tag(block, "Size").isdigit():
                    found.append(Entry(name, int(_tag(block, "Size"))))
            token = _tag(text, "NextContinuationToken")
            if _tag(text, "IsTruncated") != "true" or not token:
                return sorted(found)

    @contextlib.asynccontextmanager
    async def writing(self, name: Name) -> AsyncIterator[_Upload]:
        if any(entry.name == name for entry in await self.entries()):
            raise HcpError(f"{name} is in {self.place} already")
        upload = _Upload(self, self._key(name))
        try:
            yield upload
            await upload.finish()
        except BaseException:
            # Shielded: also when somebody pressed Ctrl-C, parts that nobody lists would cost money for ever.
            await asyncio.shield(upload.give_up())
            raise

    async def reading(self, name: Name, most: int = 0) -> AsyncIterator[bytes]:
        more = {"range": f"bytes=0-{most - 1}"} if most else {}
        async with self.asked("GET", self._key(name), {}, b"", more) as answer:
            if answer.status == 404:
                raise missing(name, self.place)
            if answer.status not in (200, 206):
                raise await self._refused(answer)
            try:
                async for chunk in answer.content.iter_chunked(CHUNK):
                    yield chunk
            except (aiohttp.ClientError, TimeoutError) as exc:
                raise HcpError(f"{self.place} stopped sending", cause=str(exc) or "nothing came in time") from None

    async def remove(self, name: Name) -> None:
        # Stores say "deleted" of what was never there.
        if not any(entry.name == name for entry in await self.entries()):
            raise missing(name, self.place)
        await self._text("DELETE", self._key(name), {})

    def _key(self, name: Name) -> str:
        return "/".join(filter(None, (self._prefix, name.file)))

    async def _text(self, method: str, key: str, params: Mapping[str, str], body: bytes = b"") -> str:
        text, _ = await self.call(method, key, params, body)
        return text

    async def call(self, method: str, key: str, params: Mapping[str, str], body: bytes = b"") -> tuple[str, str]:
        """A small answer and its ETag; what a store or the way to it failed at is tried again."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                async with self.asked(method, key, params, body) as answer:
                    if answer.status < 300:
                        raw = await answer.content.read(_LONGEST_ANSWER)
                        return raw.decode("utf-8", "replace"), answer.headers.get("ETag", "")
                    error = await self._refused(answer)
                    if answer.status < 500 and answer.status != 429:
                        raise error
            except Unanswered as exc:
                error = exc
            if attempt == _ATTEMPTS:
                raise error
            await asyncio.sleep(0.5 * 2**attempt)
        raise AssertionError

    @contextlib.asynccontextmanager
    async def asked(
        self, method: str, key: str, params: Mapping[str, str], body: bytes, more: Mapping[str, str] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        path = s3_signing.path_of(f"/{self._bucket}/{key}" if key else f"/{self._bucket}")
        query = s3_signing.query_of(params)
        sent = s3_signing.headers(
            self._who, self._region, method, self._host, path, query, body, dt.datetime.now(dt.UTC), more
        )
        url = URL(f"{self._endpoint.rstrip('/')}{path}{f'?{query}' if query else ''}", encoded=True)
        session = self._opened()
        try:
            answer = await session.request(
                method,
                url,
                data=io.BytesIO(body) if body else None,
                headers=sent,
                timeout=_LIMITS,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            raise Unanswered(f"{self._endpoint} does not answer", cause=str(exc) or "nothing came in time") from None
        async with answer:
            yield answer

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=self._trust if self._trust is not None else True)
            # A sum that the store would have to ask for is in every signature already.
            self._session = aiohttp.ClientSession(
                connector=connector, auto_decompress=False, skip_auto_headers=("Content-Type",)
            )
        return self._session

    async def _refused(self, answer: aiohttp.ClientResponse) -> HcpError:
        text = (await answer.content.read(_LONGEST_ANSWER)).decode("utf-8", "replace")
        code, said = _tag(text, "Code"), _tag(text, "Message")
        cause = f"{answer.status} {': '.join(filter(None, (code, said)))[:500]}".strip()
        hints = {
            "NoSuchBucket": f"make the bucket {self._bucket} first",
            "InvalidAccessKeyId": "check the access key",
            "SignatureDoesNotMatch": "check the secret key, --s3-region, and this machine's clock",
            "RequestTimeTooSkewed": "check this machine's clock",
            "PermanentRedirect": "the bucket is in another region: --s3-region",
            "AuthorizationHeaderMalformed": "the bucket is in another region: --s3-region",
        }
        return HcpError(f"{self.place} refuses what was asked", cause=cause, hint=hints.get(code))


class Unanswered(HcpError):
    """Nobody knows whether the store has heard it."""


class _Upload:
    """A file that is being uploaded; a small one goes in one piece."""

    def __init__(self, bucket: Bucket, key: str) -> None:
        self._bucket, self._key = bucket, key
        self._held = bytearray()
        self._id = ""
        self._tags: list[str] = []

    async def put(self, data: bytes) -> None:
        self._held += data
        while len(self._held) >= PART:
            await self._part(bytes(self._held[:PART]))
            del self._held[:PART]

    async def finish(self) -> None:
        if not self._id:
            await self._bucket.call("PUT", self._key, {}, bytes(self._held))
            return
        if self._held:
            await self._part(bytes(self._held))
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag)}</ETag></Part>"
            for number, tag in enumerate(self._tags, 1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        text, _ = await self._bucket.call("POST", self._key, {"uploadId": self._id}, body)
        if "<Error>" in text:  # some stores say 200 first and that it failed afterwards
            raise HcpError(f"{self._bucket.place} could not put the backup together", cause=_tag(text, "Message"))

    async def give_up(self) -> None:
        if self._id:
            with contextlib.suppress(HcpError):
                await self._bucket.call("DELETE", self._key, {"uploadId": self._id})

    async def _part(self, data: bytes) -> None:
        if not self._id:
            text, _ = await self._bucket.call("POST", self._key, {"uploads": ""})
            self._id = _tag(text, "UploadId")
            if not self._id:
                raise HcpError(f"{self._bucket.place} takes no files in parts")
        params = {"partNumber": str(len(self._tags) + 1), "uploadId": self._id}
        _, tag = await self._bucket.call("PUT", self._key, params, data)
        self._tags.append(tag)


def _tag(text: str, name: str) -> str:
    """The first element of a name in an answer; these have no attributes and nothing nested."""
    found = re.search(f"<{name}>([^<]*)</{name}>", text)
    return html.unescape(found[1]) if found else ""
