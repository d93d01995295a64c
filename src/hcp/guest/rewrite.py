"""Having the API server store objects once more: under its newest key, in the version that it writes now.

A patch that changes nothing does it. The server reads the object, and writes it only if what it would write differs
from what lies in etcd; nobody's change can be lost, and of the objects only names come here, however large they are.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.errors import Conflict, Forbidden, Gone, Invalid, NotFound, ServerFailure
from hcp.kube.resources import CONFIGMAPS, SECRETS, Resource

_AT_ONCE = 8
PAGE = 200
# Of a sentence that an owner's webhook says.
LONGEST = 300
_NAMES_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True)
class Page:
    """What became of one page of a kind."""

    count: int
    # Where the next page begins; empty after the last.
    after: str = ""
    # Objects that the server does not take as they are, each with its reason.
    refused: tuple[str, ...] = ()


async def rewrite_page(client: Client, resource: Resource, after: str = "") -> Page:
    """One page of all objects of a kind. A place that the server has forgotten meanwhile means from the beginning."""
    params = {"limit": str(PAGE)} | ({"continue": after} if after else {})
    try:
        found = await client.raw("GET", resource.path(), params=params, accept=_NAMES_ONLY)
    except NotFound:
        return Page(0)  # the kind went away with all its objects
    except Gone:
        if not after:
            raise
        return await rewrite_page(client, resource)
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(meta: dict[str, Any]) -> str:
        async with limit:
            return await _again(client, resource, str(meta["name"]), meta.get("namespace"))

    items = found.get("items") or []
    said = await asyncio.gather(*(one(item["metadata"]) for item in items))
    left = str((found.get("metadata") or {}).get("continue") or "")
    return Page(len(items), left, tuple(why for why in said if why))


async def rewrite_encrypted(client: Client) -> int:
    """Everything that is encrypted; how many objects were looked at."""
    count = 0
    for resource in (SECRETS, CONFIGMAPS):
        page = Page(0, after="")
        while True:
            page = await rewrite_page(client, resource, page.after)
            if page.refused:
                raise HcpError("Not everything can be stored under the new key", cause="; ".join(page.refused[:3]))
            count += page.count
            if not page.after:
                break
    return count


async def _again(client: Client, resource: Resource, name: str, namespace: str | None) -> str:
    """Empty when it is done, or somebody did it meanwhile by a change of his own."""
    try:
        await client.patch(resource, name, namespace, {})
    except (Conflict, NotFound):
        return ""
    except (Forbidden, Invalid, ServerFailure) as error:  # an admission webhook of the owner's can be any of these
        where = f"{namespace}/{name}" if namespace else name
        return f"{where}: {error.cause or error}"[:LONGEST]
    return ""
