"""A document from a web server that a user named, read with the care that registries get.

https only, also where it redirects to; the address is checked where the socket is made; no login is ever sent; size and
time are bounded.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import TYPE_CHECKING

from yarl import URL

from hcp.errors import HcpError
from hcp.http_proxy import Proxies
from hcp.oci.address_policy import AddressPolicy
from hcp.oci.limits import TooLarge, read_at_most
from hcp.oci.transport import REDIRECTS, forbidden_among, place_of
from hcp.oci.trust import Trust
from hcp.oci.way_out import proxy_for

if TYPE_CHECKING:
    import aiohttp

MAX_REDIRECTS = 3


class DocumentError(HcpError):
    """The document cannot be read."""


class DocumentRefused(DocumentError):
    """The server says no, or what it sends is not taken."""


async def fetch(url: URL, trust: Trust, policy: AddressPolicy, *, accept: str, limit: int, seconds: float) -> bytes:
    """The document; DocumentError says why not."""
    import aiohttp

    shown = str(url.with_query(None))[:300]
    headers = {"User-Agent": "hcp", "Accept": accept}
    try:
        async with asyncio.timeout(seconds):
            for _ in range(MAX_REDIRECTS + 1):
                if url.scheme != "https" or not url.host:
                    raise DocumentRefused(f"{shown} is not read", cause=f"{url.origin()} is not served over https")
                place = place_of(url)
                proxy = await proxy_for(url, place, Proxies.of(os.environ), policy)
                watched = proxy is None and policy.watches(place)
                connector = aiohttp.TCPConnector(socket_factory=policy.socket if watched else None)
                async with (
                    aiohttp.ClientSession(connector=connector, headers=headers) as session,
                    session.get(url, ssl=trust.context(place), proxy=proxy, allow_redirects=False) as answer,
                ):
                    if answer.status in REDIRECTS and "Location" in answer.headers:
                        url = url.join(URL(answer.headers["Location"]))
                        continue
                    return await _body(answer, shown, limit)
        raise DocumentRefused(f"{shown} is not read", cause=f"it redirects more than {MAX_REDIRECTS} times")
    except TimeoutError as exc:
        raise DocumentError(f"{shown} cannot be read", cause=f"no answer within {seconds:.0f} seconds") from exc
    except aiohttp.ClientConnectorCertificateError as exc:
        reason = getattr(exc.certificate_error, "verify_message", "") or str(exc.certificate_error)
        raise DocumentError(
            f"{shown} cannot be read",
            cause=f"its certificate is not trusted: {reason}",
            hint="add the CA that signed it to the additional trust bundle",
        ) from exc
    except (aiohttp.ClientError, ssl.SSLError, OSError, ValueError) as exc:
        if (refused := forbidden_among(exc)) is not None:
            raise DocumentRefused(f"{shown} is not read", cause=str(refused)) from exc
        raise DocumentError(f"{shown} cannot be read", cause=str(exc)[:300] or type(exc).__name__) from exc


async def _body(answer: aiohttp.ClientResponse, shown: str, limit: int) -> bytes:
    if answer.status != 200:
        raise DocumentRefused(f"{shown} cannot be read", cause=f"it answers with HTTP {answer.status}")
    try:
        return await read_at_most(answer.content, limit)
    except TooLarge as exc:
        raise DocumentRefused(f"{shown} is not read", cause=f"it sends {exc}") from exc
