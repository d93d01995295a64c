"""Foreign namespaces that stand in the way of a cluster, followed until they are gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.follow import follow
from hcp.kube.resources import NAMESPACES
from hcp.runtime.ownership import mark

log = logging.getLogger(__name__)
Object = dict[str, Any]


class ForeignNamespaces:
    """One watch per cluster that is held up, and none otherwise: foreign namespaces carry no label of ours."""

    def __init__(self, client: Client, told: Callable[[str], None]) -> None:
        self._client = client
        self._told = told
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def follow(self, key: str, namespace: Object) -> None:
        """Ask for another pass over `key` when this namespace goes, or says something else about its owner."""
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._until_it_changes(key, namespace))

    def forget(self, key: str) -> None:
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for key in list(self._tasks):
            self.forget(key)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _until_it_changes(self, key: str, namespace: Object) -> None:
        seen = _facts(namespace)
        try:
            async with aclosing(follow(self._client, NAMESPACES, namespace["metadata"]["name"])) as states:
                async for live in states:
                    if _facts(live) != seen:
                        break
        except HcpError as exc:
            # The next pass looks for itself, and begins to follow again.
            log.info("a namespace cannot be followed", extra={"key": key, "error": str(exc)})
        self._tasks.pop(key, None)
        self._told(key)


def _facts(namespace: Object | None) -> object:
    return namespace and (namespace["metadata"]["uid"], mark(namespace))
