"""Definitions of kinds inside the guest: objects of a kind can only be made once the API server serves it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from hcp.api.paths import at
from hcp.guest.objects import Manifest
from hcp.kube import Client
from hcp.kube.follow import follow
from hcp.kube.resources import CRDS
from hcp.runtime.apply import apply_if_changed
from hcp.runtime.conditions import is_true

# Requests to one guest at a time.
AT_ONCE = 8


async def apply_definitions(client: Client, definitions: Iterable[Manifest]) -> None:
    """Make them true and wait until all are served; the caller's time is bounded."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(definition: Manifest) -> None:
        async with limit:
            await _served(client, await apply_if_changed(client, None, definition))

    await asyncio.gather(*(one(each) for each in definitions))


async def _served(client: Client, definition: Manifest) -> None:
    if is_true(at(definition, "status.conditions"), "Established"):
        return
    async with contextlib.aclosing(follow(client, CRDS, definition["metadata"]["name"])) as changes:
        async for live in changes:
            if is_true(at(live, "status.conditions"), "Established"):
                return
