"""HTTP to registries: tokens, trust, and errors that name the image."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any

import aiohttp

from hcp.oci import errors
from hcp.oci.auth import Auths, Challenge, Login, Token, parse_challenge
from hcp.oci.reference import Reference
from hcp.oci.trust import Trust

LIMITS = aiohttp.ClientTimeout(total=None, sock_connect=15, sock_read=60)


class RegistryTransport:
    """Sends authorised GET requests to any number of registries."""

    def __init__(self, auths: Auths, trust: Trust, plain_http: Collection[str] = ()) -> None:
        self._auths = auths
        self._trust = trust
        self._plain_http = frozenset(plain_http)
        self._headers: dict[tuple[str, str], str | Token] = {}
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @contextlib.asynccontextmanager
    async def get(
        self, ref: Reference, path: str, headers: Mapping[str, str] | None = None, *, method: str = "GET"
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request below the image's repository; authorises itself when asked to. Raises for any refusal."""
        url = f"{self._base(ref)}/v2/{ref.repository}/{path}"
        async with self._request(ref, method, url, self._with_auth(ref, headers)) as response:
            if response.status != 401:
                self._check(ref, response)
                yield response
                return
            challenges = response.headers.getall("WWW-Authenticate", [])
        await self._authorise(ref, [parse_challenge(c) for c in challenges])
        async with self._request(ref, method, url, self._with_auth(ref, headers)) as response:
            self._check(ref, response)
            yield response

    @contextlib.asynccontextmanager
    async def _request(
        self, ref: Reference, method: str, url: str, headers: Mapping[str, str], params: Mapping[str, str] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=LIMITS, headers={"User-Agent": "hcp"})
        image, host = str(ref), ref.host
        try:
            async with self._session.request(
                method, url, headers=headers, params=params, ssl=self._trust.context(ref.registry)
            ) as response:
                yield response
        except (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError) as exc:
            reason = getattr(exc, "certificate_error", exc)
            raise errors.untrusted(image, host, getattr(reason, "verify_message", "") or str(reason)) from exc
        except aiohttp.ClientConnectorError as exc:
            raise errors.unreachable(image, host, exc.os_error.strerror or str(exc.os_error)) from exc
        except TimeoutError as exc:
            raise errors.unreachable(image, host, "no answer in time") from exc
        except (aiohttp.ClientError, OSError) as exc:
            raise errors.unreachable(image, host, str(exc) or type(exc).__name__) from exc

    def _base(self, ref: Reference) -> str:
        return f"{'http' if ref.registry in self._plain_http else 'https'}://{ref.host}"

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
        known = self._headers.get((ref.registry, ref.repository))
        value = _bearer(known) if isinstance(known, Token) else known
        return {**(headers or {}), **({"Authorization": value} if value else {})}

    async def _authorise(self, ref: Reference, challenges: list[Challenge]) -> None:
        """Buy a token, or fall back to the password, and keep it for this repository."""
        login = self._auths.find(ref)
        key = (ref.registry, ref.repository)
        self._headers.pop(key, None)
        for challenge in challenges:
            if challenge.scheme == "bearer" and challenge.realm:
                self._headers[key] = await self._token(ref, challenge, login)
                return
            if challenge.scheme == "basic" and login is not None:
                self._headers[key] = login.basic
                return
        raise errors.unauthorized(str(ref), ref.host, login is not None)

    async def _token(self, ref: Reference, challenge: Challenge, login: Login | None) -> Token:
        params = {"scope": challenge.scope or f"repository:{ref.repository}:pull"}
        if challenge.service:
            params["service"] = challenge.service
        headers = {"Authorization": login.basic} if login is not None else {}
        async with self._request(ref, "GET", challenge.realm, headers, params) as response:
            if response.status >= 400:
                raise errors.unauthorized(str(ref), ref.host, login is not None)
            token = Token.from_answer(_object(await response.read()))
        if token is None:
            raise errors.unauthorized(str(ref), ref.host, login is not None)
        return token


def _bearer(token: Token) -> str | None:
    return f"Bearer {token.value}" if token.valid else None


def _object(raw: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(raw)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
