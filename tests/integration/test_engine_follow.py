"""One object followed on a real API server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.follow import follow


async def test_a_followed_object_is_seen_absent_made_changed_and_gone(client: Client, namespace: str) -> None:
    metadata = {"name": "followed", "namespace": namespace}
    other = {"name": "other", "namespace": namespace}
    seen: list[Any] = []
    async with asyncio.timeout(300), aclosing(follow(client, r.CONFIGMAPS, "followed", namespace)) as states:
        async for found in states:
            seen.append(found and found.get("data"))
            if len(seen) == 1:
                await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": other})
                await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}})
            elif len(seen) == 2:
                await client.patch(r.CONFIGMAPS, "followed", namespace, {"data": {"a": "2"}})
            elif len(seen) == 3:
                await client.delete(r.CONFIGMAPS, "followed", namespace)
            else:
                break
    assert seen == [None, {"a": "1"}, {"a": "2"}, None]
