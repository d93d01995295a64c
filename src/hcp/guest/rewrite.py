"""Writing everything that is encrypted once more, so that it is stored under the newest key."""

from __future__ import annotations

import asyncio

from hcp.kube import Client
from hcp.kube.errors import Conflict, NotFound
from hcp.kube.resources import CONFIGMAPS, SECRETS

_AT_ONCE = 8


async def rewrite_encrypted(client: Client) -> int:
    """How many were written. Who changed or removed one meanwhile did the same work: then nothing is left to do."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(obj: dict[str, object]) -> None:
        async with limit:
            try:
                await client.replace(obj)
            except (Conflict, NotFound):
                return

    count = 0
    for resource in (SECRETS, CONFIGMAPS):
        found = await client.list(resource)
        await asyncio.gather(*(one(obj) for obj in found))
        count += len(found)
    return count
