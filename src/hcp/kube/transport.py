"""HTTP to one API server: one connection pool, identity, retries, and errors a person can read.

What is retried here is only what is safe and cheap to retry: 429 (the server did nothing yet) after the time it asks
for, and connections that broke under a request that may be sent twice. Anything longer is the caller's backoff.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp
from yarl import URL

from hcp.kube import bounded_json, errors
from hcp.kube.config import ClusterConfig
from hcp.kube.credentials import Credentials
from hcp.kube.errors import Call

MAX_ATTEMPTS = 6
MAX_RETRY_AFTER = 30.0
# How long, in all, we wait for a server that says it is busy.
BUSY_PATIENCE = 60.0
MAX_IN_FLIGHT = 64
# A pass uses its connections again at once; a guest that is asked once a minute need not keep one open for that.
KEEP_ALIVE = 15.0
REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=60, connect=10)
SAFE_METHODS = frozenset({"GET", "HEAD", "PUT", "DELETE"})
Params = Mapping[str, str] | None
Observer = Callable[[str, str, int, float], None]


class Transport:
    """Sends requests to one server; `observer(verb, target, status, seconds)` hears of each answer."""

    def __init__(self, config: ClusterConfig, *, user_agent: str = "hcp", observer: Observer | None = None) -> None:
        self.config = config
        self.observer = observer
        self._user_agent = user_agent
        self._credentials = Credentials(config)
        self._session: aiohttp.ClientSession | None = None
        self._session_context: ssl.SSLContext | None = None
        self._retired: list[aiohttp.ClientSession] = []
        self._closed = False
        self._slots = asyncio.Semaphore(MAX_IN_FLIGHT)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """For good: whoever still follows something here is told so, and opens no connections that nobody closes."""
        self._closed = True
        sessions = [*self._retired, *([self._session] if self._session is not None else [])]
        self._retired, self._session = [], None
        for session in sessions:
            await session.close()

    @property
    def connected(self) -> bool:
        """Whether it holds a pool of connections that has to be closed."""
        return self._session is not None

    async def json(
        self,
        call: Call,
        method: str,
        path: str,
        *,
        params: Params = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        repeatable: bool | None = None,
    ) -> Any:
        """Send and parse the JSON answer; raise an ApiError for anything but success."""
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        raw = await self.send(
            call,
            method,
            path,
            params=params,
            data=data,
            headers={"Content-Type": content_type, "Accept": accept},
            repeatable=method in SAFE_METHODS if repeatable is None else repeatable,
        )
        if not raw:
            return None
        try:
            return bounded_json.loads(raw, custom=bounded_json.is_custom(path))
        except ValueError as exc:
            text = raw[:200].decode("utf-8", "replace")
            raise errors.ServerFailure(f"{self.config.server}{path} did not answer with JSON", cause=text) from exc

    async def send(
        self,
        call: Call,
        method: str,
        path: str,
        *,
        params: Params = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = True,
    ) -> bytes:
        """Send with retries and give back the body."""
        attempt = 0
        renewed = False
        waited = 0.0
        while True:
            attempt += 1
            generation = self._credentials.generation
            wait = backoff(attempt)
            try:
                async with self._slots:
                    return await self._once(call, method, path, params, data, headers)
            except Retry as retry:
                busy = retry.error.status == 429
                if waited >= BUSY_PATIENCE if busy else attempt >= MAX_ATTEMPTS or not repeatable:
                    raise retry.error from None
                if retry.after is not None:
                    # All who were turned away are told the same time: come back one after the other.
                    wait = retry.after * random.uniform(1.0, 1.0 + min(attempt, 6) / 2)  # noqa: S311 - not a secret
                waited += wait
            except errors.Unauthorized:
                if renewed or not self._credentials.can_refresh:
                    raise
                renewed = True
                await self._credentials.refresh(generation)
                continue
            except Broken as broken:
                if attempt >= MAX_ATTEMPTS or not repeatable:
                    raise errors.unreachable(self.config.server, str(broken)) from broken
            await asyncio.sleep(wait)

    async def _once(
        self, call: Call, method: str, path: str, params: Params, data: bytes | None, headers: Mapping[str, str] | None
    ) -> bytes:
        async with self.open(call, method, path, params=params, data=data, headers=headers) as response:
            return await response.read()

    @contextlib.asynccontextmanager
    async def open(
        self,
        call: Call,
        method: str,
        path: str,
        *,
        params: Params = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        limits: aiohttp.ClientTimeout = REQUEST_TIMEOUT,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request without retries, the answer open for reading. Raises for anything but success."""
        session = await self._open_session()
        url = URL(self.config.server + path, encoded=False)
        if params:
            url = url.with_query(dict(params))
        with self._speaking(call) as answer:
            async with session.request(
                method,
                url,
                data=data,
                headers=[*await self._credentials.headers(), *(headers or {}).items()],
                timeout=limits,
                server_hostname=self.config.tls_server_name,
                proxy=self.config.proxy,
                allow_redirects=False,
            ) as response:
                answer.status = response.status
                if response.status >= 300:
                    await self._refuse(call, response)
                yield response

    @contextlib.contextmanager
    def _speaking(self, call: Call) -> Iterator[Answer]:
        """While talking to the server: failures of the connection become errors a person can read."""
        started, answer = time.monotonic(), Answer()
        try:
            yield answer
        except aiohttp.ClientConnectorCertificateError as exc:
            raise self._bad_certificate(exc.certificate_error) from exc
        except (aiohttp.ClientConnectorSSLError, ssl.SSLError) as exc:
            raise errors.unreachable(self.config.server, str(exc)) from exc
        except aiohttp.ClientHttpProxyError as exc:
            raise errors.proxy_refused(self.config.server, self.config.proxy or "", exc.status, exc.message) from exc
        except aiohttp.ClientProxyConnectionError as exc:
            raise errors.no_proxy_there(self.config.server, self.config.proxy or "", str(exc.os_error)) from exc
        except aiohttp.ClientConnectorError as exc:
            raise errors.unreachable(self.config.server, exc.os_error.strerror or str(exc.os_error)) from exc
        except TimeoutError as exc:
            raise errors.unreachable(self.config.server, "no answer in time") from exc
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as exc:
            raise Broken(str(exc) or "the connection was closed") from exc
        except aiohttp.WSServerHandshakeError:
            raise
        except aiohttp.ClientError as exc:
            raise errors.unreachable(self.config.server, str(exc)) from exc
        finally:
            if self.observer is not None:
                self.observer(call.verb, call.target, answer.status, time.monotonic() - started)

    @contextlib.asynccontextmanager
    async def websocket(
        self, call: Call, path: str, protocol: str
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse[bool]]:
        """A connection that carries bytes both ways, as consoles and port forwarding of KubeVirt do."""
        session = await self._open_session()
        try:
            with self._speaking(call) as answer:
                async with session.ws_connect(
                    URL(self.config.server + path, encoded=False),
                    protocols=(protocol,),
                    headers=await self._credentials.headers(),
                    server_hostname=self.config.tls_server_name,
                    proxy=self.config.proxy,
                    max_msg_size=0,
                ) as connection:
                    answer.status = 101
                    yield connection
        except aiohttp.WSServerHandshakeError as exc:
            raise errors.from_status(call, exc.status, {"message": exc.message}) from exc
        except Broken as broken:
            raise errors.unreachable(self.config.server, str(broken)) from broken

    @contextlib.asynccontextmanager
    async def stream(
        self, call: Call, path: str, *, params: Params = None, limits: aiohttp.ClientTimeout = REQUEST_TIMEOUT
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A GET whose answer is read as it comes: no retries, but an identity that was refused is renewed once."""
        opened = renewed = False
        while True:
            generation = self._credentials.generation
            try:
                async with self.open(call, "GET", path, params=params, limits=limits) as response:
                    opened = True
                    yield response
                    return
            except Retry as retry:
                raise retry.error from retry
            except Broken as broken:
                raise errors.unreachable(self.config.server, str(broken)) from broken
            except errors.Unauthorized:
                if opened or renewed or not self._credentials.can_refresh:
                    raise
                renewed = True
                await self._credentials.refresh(generation)

    async def _refuse(self, call: Call, response: aiohttp.ClientResponse) -> None:
        """Raise the error that an unsuccessful answer means."""
        raw = await response.read()
        try:
            body = bounded_json.loads(raw)
        except ValueError:
            body = {"message": raw[:500].decode("utf-8", "replace")}
        error = errors.from_status(call, response.status, body if isinstance(body, dict) else {})
        if response.status == 401:
            expired = await asyncio.to_thread(_expired_on, self._credentials.client_certificate())
            if expired:
                error = errors.client_certificate_expired(self.config.server, expired)
        after = response.headers.get("Retry-After", "")
        if response.status == 429 or (response.status >= 500 and after):
            seconds = min(float(after), MAX_RETRY_AFTER) if after.isdigit() else None
            raise Retry(error, seconds)
        raise error

    async def _open_session(self) -> aiohttp.ClientSession:
        """The pool for the current identity.

        A client certificate belongs to a connection, so a renewed one needs a new pool; the old one keeps serving
        what is under way and is closed with us.
        """
        context = await self._credentials.ssl_context() if self.config.server.startswith("https") else None
        if self._closed:
            raise errors.unreachable(self.config.server, "the client was closed")
        if self._session is None or self._session_context is not context:
            if self._session is not None:
                self._retired.append(self._session)
            connector = aiohttp.TCPConnector(
                ssl=context if context is not None else True,
                limit=0,
                keepalive_timeout=KEEP_ALIVE,
                ttl_dns_cache=30,
                socket_factory=_keepalive_socket,
            )
            self._session_context = context
            self._session = aiohttp.ClientSession(
                connector=connector, headers={"User-Agent": self._user_agent}, read_bufsize=2**20
            )
        return self._session

    def _bad_certificate(self, exc: Exception) -> errors.UntrustedCertificate:
        code = getattr(exc, "verify_code", 0)
        text = getattr(exc, "verify_message", "") or str(exc)
        if code in (9, 10):  # not yet valid, expired
            return errors.server_certificate_expired(self.config.server, text)
        return errors.untrusted(self.config.server, text)


class Answer:
    """What is known of an answer while it is read."""

    status = 0


class Retry(Exception):
    """The server asked us to come back later."""

    def __init__(self, error: errors.ApiError, after: float | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.after = after


class Broken(Exception):
    """The connection went away under the request: nobody knows whether it was carried out."""


def backoff(attempt: int, base: float = 0.1, cap: float = 10.0) -> float:
    """Doubling, capped, with jitter, so a thousand clients do not come back in the same moment."""
    # A server may be away for days: the number of attempts has no bound, a power of two has.
    return min(cap, base * 2.0 ** min(attempt - 1, 32)) * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret


def _keepalive_socket(addr_info: tuple[Any, ...]) -> socket.socket:
    """A socket that notices a vanished peer in half a minute, so a watch never hangs on a dead connection."""
    family, kind, proto = addr_info[:3]
    sock = socket.socket(family, kind, proto)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return sock


def _expired_on(pem: bytes | None) -> str | None:
    """The day our certificate ran out, if it did."""
    if not pem:
        return None
    import datetime

    from cryptography import x509

    try:
        end = x509.load_pem_x509_certificate(pem).not_valid_after_utc
    except ValueError:
        return None
    return end.date().isoformat() if end < datetime.datetime.now(datetime.UTC) else None
