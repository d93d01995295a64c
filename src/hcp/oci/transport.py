"""HTTP to registries: tokens, trust, redirects, and errors that name the image."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import aiohttp
from yarl import URL

from hcp.http_proxy import Proxies
from hcp.oci import errors, realm
from hcp.oci.address_policy import OPEN, AddressPolicy, ForbiddenAddress
from hcp.oci.auth import Auths, Challenge, Login, Token, parse_challenge
from hcp.oci.limits import MAX_TOKEN, TooLarge, read_at_most
from hcp.oci.reference import Reference
from hcp.oci.trust import Trust
from hcp.oci.way_out import proxy_for

LIMITS = aiohttp.ClientTimeout(total=None, sock_connect=15, sock_read=60)
MAX_REDIRECTS = 5
REDIRECTS = (301, 302, 303, 307, 308)
# Those that keep the method and the body: the only ones followed with a request that changes something.
KEEPING = (307, 308)
# Registries read a blob again before they answer that it is whole.
UPLOAD_LIMITS = aiohttp.ClientTimeout(total=None, sock_connect=15, sock_read=300)
READING = ("GET", "HEAD")
# What is sent, made anew for every attempt.
Body = Callable[[], Any]


class RegistryTransport:
    """Sends authorised requests to any number of registries."""

    def __init__(
        self,
        auths: Auths,
        trust: Trust,
        address_policy: AddressPolicy = OPEN,
        *,
        trust_env: bool = False,
        socket: str | None = None,
    ) -> None:
        """`trust_env`: through the environment's proxy. `socket`: a Unix socket where the registry listens, whatever
        host an image names."""
        self._auths = auths
        self._trust = trust
        self._address_policy = address_policy
        self._proxies = Proxies.of(os.environ) if trust_env and socket is None else Proxies()
        self._socket = socket
        self._tokens: dict[tuple[str, str], Token] = {}
        # Registries that ask for the password itself: it goes with the first request to each of their repositories.
        self._basic: set[str] = set()
        # Connections whose addresses are checked, and those of registries that may be anywhere.
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._busy = 0
        self._idle = asyncio.Event()

    async def close(self) -> None:
        sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            await session.close()

    async def close_when_idle(self) -> None:
        """Let requests under way end before the connections go."""
        try:
            while self._busy:
                self._idle.clear()
                await self._idle.wait()
        finally:
            await self.close()

    @contextlib.asynccontextmanager
    async def get(
        self, ref: Reference, path: str, headers: Mapping[str, str] | None = None, *, method: str = "GET"
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request below the image's repository; authorises itself when asked to. Raises for any refusal."""
        async with self.send(ref, method, self.url(ref, path), headers) as response:
            self._check(ref, response)
            yield response

    @contextlib.asynccontextmanager
    async def send(
        self, ref: Reference, method: str, url: URL, headers: Mapping[str, str] | None = None, body: Body | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request to the registry, or to a place it named for an upload; the caller judges the answer.

        Only the registry itself is given a login.
        """
        own = url.origin() == URL(self._base(ref)).origin()
        known = self._with_auth(ref, headers) if own else dict(headers or {})
        async with self._request(ref, method, url, known, body) as response:
            if response.status != 401 or not own:
                yield response
                return
            challenges = response.headers.getall("WWW-Authenticate", [])
        actions = "pull" if method in READING else "pull,push"
        await self._authorise(ref, [parse_challenge(c) for c in challenges[:8]], actions)
        async with self._request(ref, method, url, self._with_auth(ref, headers), body) as response:
            yield response

    def url(self, ref: Reference, path: str) -> URL:
        """A place below the image's repository."""
        try:
            return URL(f"{self._base(ref)}/v2/{ref.repository}/{path}")
        except ValueError as exc:  # such as a port that is none
            raise errors.unreachable(str(ref), ref.host, str(exc)) from exc

    def has_login(self, ref: Reference) -> bool:
        return self._auths.find(ref) is not None

    @contextlib.asynccontextmanager
    async def _request(
        self, ref: Reference, method: str, url: URL, headers: Mapping[str, str], body: Body | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        image, host = str(ref), ref.host
        self._busy += 1
        try:
            async with contextlib.AsyncExitStack() as stack:
                try:
                    response = await self._follow(stack, ref, method, url, dict(headers), body)
                except ValueError as exc:
                    if isinstance(exc, aiohttp.ClientError | OSError):
                        raise
                    raise errors.unreachable(image, host, str(exc)) from exc
                yield response
        except (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError) as exc:
            reason = getattr(exc, "certificate_error", exc)
            raise errors.untrusted(image, host, getattr(reason, "verify_message", "") or str(reason)) from exc
        except aiohttp.ClientHttpProxyError as exc:
            raise errors.unreachable(image, host, f"the proxy says {exc.message} ({exc.status})") from exc
        except aiohttp.ClientProxyConnectionError as exc:
            raise errors.unreachable(image, host, f"the proxy cannot be reached: {exc.os_error}") from exc
        except aiohttp.ClientConnectorError as exc:
            forbidden = forbidden_among(exc)
            if forbidden is not None:
                raise errors.refused(image, host, str(forbidden)) from exc
            raise errors.unreachable(image, host, exc.os_error.strerror or str(exc.os_error)) from exc
        except TimeoutError as exc:
            raise errors.unreachable(image, host, "no answer in time") from exc
        except ForbiddenAddress as exc:
            raise errors.refused(image, host, str(exc)) from exc
        except (aiohttp.ClientError, OSError) as exc:
            raise errors.unreachable(image, host, str(exc) or type(exc).__name__) from exc
        finally:
            self._busy -= 1
            self._idle.set()

    async def _follow(
        self,
        stack: contextlib.AsyncExitStack,
        ref: Reference,
        method: str,
        url: URL,
        headers: dict[str, str],
        body: Body | None,
    ) -> aiohttp.ClientResponse:
        """Ask, and go where the answer sends us, each time with the same questions about the place."""
        followed, limits = (REDIRECTS, LIMITS) if method in READING else (KEEPING, UPLOAD_LIMITS)
        for _ in range(MAX_REDIRECTS + 1):
            place = place_of(url)
            if url.scheme != "https" and not (url.scheme == "http" and self._address_policy.is_insecure(place)):
                raise errors.refused(str(ref), ref.host, f"{_shown(url)} is not served over https")
            proxy = await proxy_for(url, place, self._proxies, self._address_policy)
            session = self._session(watched=proxy is None and self._address_policy.watches(place))
            context = self._trust.context(ref.registry if place == ref.host else place)
            response = await stack.enter_async_context(
                session.request(
                    method,
                    url,
                    headers=headers,
                    data=body() if body is not None else None,
                    ssl=context,
                    proxy=proxy,
                    allow_redirects=False,
                    timeout=limits,
                )
            )
            if response.status not in followed or "Location" not in response.headers:
                return response
            target = url.join(URL(response.headers["Location"]))
            response.release()
            if target.origin() != url.origin():
                headers.pop("Authorization", None)
            url = target
        raise errors.unreachable(str(ref), ref.host, f"it redirects more than {MAX_REDIRECTS} times")

    def _session(self, *, watched: bool) -> aiohttp.ClientSession:
        found = self._sessions.get(watched)
        if found is None:
            connector: aiohttp.BaseConnector
            if self._socket is not None:
                connector = aiohttp.UnixConnector(self._socket)
            else:
                connector = aiohttp.TCPConnector(socket_factory=self._address_policy.socket if watched else None)
            found = aiohttp.ClientSession(timeout=LIMITS, headers={"User-Agent": "hcp"}, connector=connector)
            self._sessions[watched] = found
        return found

    def _base(self, ref: Reference) -> str:
        return f"{'http' if self._address_policy.is_insecure(ref.registry) else 'https'}://{ref.host}"

    def _check(self, ref: Reference, response: aiohttp.ClientResponse) -> None:
        status = response.status
        if status < 300:
            return
        if status == 404:
            raise errors.unknown(str(ref), ref.host)
        if status in (401, 403):
            raise errors.unauthorized(str(ref), ref.host, self._auths.find(ref) is not None)
        raise errors.unreachable(str(ref), ref.host, f"it answers with HTTP {status}")

    def _with_auth(self, ref: Reference, headers: Mapping[str, str] | None) -> dict[str, str]:
        token = self._tokens.get((ref.registry, ref.repository))
        value = _bearer(token) if token is not None else None
        if value is None and ref.registry in self._basic:
            login = self._auths.find(ref)
            value = login.basic if login is not None else None
        return {**(headers or {}), **({"Authorization": value} if value else {})}

    async def _authorise(self, ref: Reference, challenges: list[Challenge], actions: str) -> None:
        """Get a token, or fall back to the password, and keep it for this repository."""
        login = self._auths.find(ref)
        key = (ref.registry, ref.repository)
        self._tokens.pop(key, None)
        self._basic.discard(ref.registry)
        for challenge in challenges:
            if challenge.scheme == "bearer" and challenge.realm:
                self._tokens[key] = await self._token(ref, challenge, login, actions)
                return
            if challenge.scheme == "basic" and login is not None:
                self._basic.add(ref.registry)
                return
        raise errors.unauthorized(str(ref), ref.host, login is not None)

    async def _token(self, ref: Reference, challenge: Challenge, login: Login | None, actions: str) -> Token:
        await self._check_realm(ref, challenge.realm)
        # Several scopes, as for mounting out of another repository, are asked for one by one.
        scopes = challenge.scope.split() or [f"repository:{ref.repository}:{actions}"]
        params = [("scope", scope) for scope in scopes]
        if challenge.service:
            params.append(("service", challenge.service))
        headers = {"Authorization": login.basic} if login is not None else {}
        async with self._request(ref, "GET", URL(challenge.realm).extend_query(params), headers) as response:
            if response.status >= 300:
                raise errors.unauthorized(str(ref), ref.host, login is not None)
            try:
                token = Token.from_answer(_object(await read_at_most(response.content, MAX_TOKEN)))
            except TooLarge as exc:
                raise errors.unreachable(str(ref), ref.host, f"its token service sent too much: {exc}") from exc
        if token is None:
            raise errors.unauthorized(str(ref), ref.host, login is not None)
        return token

    async def _check_realm(self, ref: Reference, text: str) -> None:
        """Whether the place where the registry sends us for a token is one it may speak for."""
        try:
            wanted = (URL(text).host or "").lower()
            host, port = realm.split(ref.host)
        except ValueError:
            wanted = host = ""
        if wanted and wanted == host:
            return
        if wanted and not self._address_policy.is_insecure(ref.registry):
            watched = self._address_policy.watches(ref.host)
            context = self._trust.context(ref.registry)
            try:
                proxy = await proxy_for(URL(self._base(ref)), ref.host, self._proxies, self._address_policy)
                if proxy is not None:
                    found = await realm.certificate_through(proxy, host, port or 443, context)
                else:
                    found = await realm.certificate(host, port or 443, context, self._address_policy, watched=watched)
            except (OSError, ssl.SSLError, TimeoutError) as exc:
                raise errors.unreachable(str(ref), ref.host, str(exc) or "no answer in time") from exc
            if realm.covers(found, wanted):
                return
        raise errors.refused(
            str(ref), ref.host, f"it wants logins to be sent to {text[:200]!r}, which its certificate does not cover"
        )


def place_of(url: URL) -> str:
    """A URL's host as image references write it: without the port that goes without saying."""
    host = url.host_subcomponent or ""
    return f"{host}:{url.explicit_port}" if url.explicit_port not in (None, 443) else host


def _shown(url: URL) -> str:
    return str(url.origin())[:200] if url.host else repr(str(url)[:200])


def forbidden_among(error: BaseException | None) -> ForbiddenAddress | None:
    """The refusal among the reasons of a failed connection: of several addresses each has one."""
    if error is None or isinstance(error, ForbiddenAddress):
        return error
    inner = list(getattr(error, "exceptions", ()))
    inner += [getattr(error, "os_error", None), error.__cause__]
    return next((found for one in inner if one is not error and (found := forbidden_among(one)) is not None), None)


def _bearer(token: Token) -> str | None:
    return f"Bearer {token.value}" if token.valid else None


def _object(raw: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}
