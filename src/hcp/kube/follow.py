"""One object as it changes: what a command waits for without asking again and again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from hcp.kube.client import Client
from hcp.kube.errors import Gone
from hcp.kube.resources import Resource


async def follow(
    client: Client, res: Resource, name: str, ns: str | None = None
) -> AsyncGenerator[dict[str, Any] | None, None]:
    """The object as it is now (None where there is none), and again after every change. It never ends by itself."""
    only = f"metadata.name={name}"
    while True:
        found, version = await client.list_with_version(res, ns, None, only)
        yield found[0] if found else None
        try:
            async with aclosing(client.watch(res, ns, None, only, version)) as changes:
                async for kind, obj in changes:
                    if kind in ("ADDED", "MODIFIED", "DELETED"):
                        yield None if kind == "DELETED" else obj
        except Gone:
            continue  # too old to go on from: look anew
