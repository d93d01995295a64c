"""Applying many objects in the order they need each other."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence

from hcp.api.manifests import Object
from hcp.kube import Client
from hcp.kube.errors import Invalid
from hcp.kube.resources import STORAGECLASSES
from hcp.local.addons import waiting

MANAGER = "hcp-local"
_AT_ONCE = 16
_FIRST = ("CustomResourceDefinition", "Namespace")


def digest_of(wanted: Sequence[Object]) -> str:
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:20]


async def apply_all(client: Client, wanted: list[Object]) -> None:
    """Definitions and namespaces first, the rest at once."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(obj: Object) -> None:
        async with slots:
            await _apply(client, obj)

    first = [obj for obj in wanted if obj["kind"] in _FIRST]
    await asyncio.gather(*(one(obj) for obj in first))
    await waiting.definitions_served(client, [obj for obj in first if obj["kind"] == _FIRST[0]])
    await asyncio.gather(*(one(obj) for obj in wanted if obj["kind"] not in _FIRST))


async def _apply(client: Client, obj: Object) -> None:
    try:
        await client.apply(obj, manager=MANAGER)
    except Invalid:
        # A class that an older hcp made cannot be changed; volumes and CDI's profile hang on it, and it still works.
        if obj["kind"] != STORAGECLASSES.kind or not await client.get_or_none(STORAGECLASSES, obj["metadata"]["name"]):
            raise
