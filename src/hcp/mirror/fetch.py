"""Fetching what is no image: update graphs, charts, detached signatures."""

from __future__ import annotations

import aiohttp
from yarl import URL

from hcp.errors import HcpError
from hcp.oci.limits import TooLarge, read_at_most
from hcp.oci.trust import Trust

MOST_BYTES = 64 << 20
_LIMITS = aiohttp.ClientTimeout(total=300, sock_connect=15)


class NotFetched(HcpError):
    """`missing`: the server answers, and does not have it."""

    missing = False


async def get(url: URL, trust: Trust, *, accept: str = "*/*") -> bytes:
    """A file over HTTP, through the environment's proxy if there is one."""
    try:
        async with (
            aiohttp.ClientSession(trust_env=True, timeout=_LIMITS) as session,
            session.get(url, headers={"Accept": accept}, ssl=trust.context(url.authority)) as answer,
        ):
            if answer.status != 200:
                error = _failed(url, f"HTTP {answer.status}")
                error.missing = answer.status in (403, 404)
                raise error
            return await read_at_most(answer.content, MOST_BYTES)
    except (aiohttp.ClientError, OSError, TimeoutError, TooLarge, ValueError) as error:
        raise _failed(url, str(error) or "no answer in time") from error


def _failed(url: URL, cause: str) -> NotFetched:
    return NotFetched(f"{url} cannot be fetched", cause=cause, hint="check its address, the network and any proxy")
