"""Watching a few objects while a person waits for them: list, then watch, and again when the watch ends.

An informer hides its troubles, because a controller can only wait. Here they are shown, and a refusal that lasts ends
the wait. Listing anew after every broken watch keeps it simple and costs little: there are one or two kinds to follow.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from hcp.kube import Client, Resource
from hcp.kube.errors import (
    ApiError,
    Forbidden,
    Gone,
    NotFound,
    ServerFailure,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from hcp.kube.transport import backoff

Object = dict[str, Any]

PASSING = (Unreachable, ServerFailure, TooManyRequests)
REFUSALS = (Forbidden, Unauthorized)
# A server that has just started may not know anybody's rights yet; afterwards a refusal is meant.
PATIENCE = 30.0
LONGEST_PAUSE = 5.0
# What ends sooner than this is tried again after growing pauses.
SHORT = 1.0


class Watched:
    """The objects of one kind in a namespace, or the one of a name, as last seen."""

    def __init__(self, resource: Resource, namespace: str, name: str = "") -> None:
        self.resource = resource
        self.namespace = namespace
        self.fields = f"metadata.name={name}" if name else None
        self.objects: dict[str, Object] = {}
        self.known = False
        self.trouble: ApiError | None = None

    def one(self) -> Object | None:
        """The only object, or None when there is none."""
        return next(iter(self.objects.values()), None)

    async def follow(self, client: Client, tell: Callable[[], None]) -> None:
        """Runs until cancelled; `tell` is called after every change. Raises what waiting does not cure."""
        attempt, refused_since = 0, 0.0
        while True:
            started = time.monotonic()
            try:
                version = await self._list(client, tell)
                if version:
                    await self._watch(client, version, tell)
            except Gone:
                pass  # the version to watch from was too old: listing anew is all there is to do
            except PASSING as error:
                self.trouble = error
                tell()
            except REFUSALS as error:
                if not isinstance(self.trouble, REFUSALS):
                    refused_since = time.monotonic()
                if not self.known or time.monotonic() - refused_since > PATIENCE:
                    raise
                self.trouble = error
                tell()
            attempt = 1 if time.monotonic() - started > SHORT else attempt + 1
            await asyncio.sleep(backoff(attempt, cap=LONGEST_PAUSE))

    async def _list(self, client: Client, tell: Callable[[], None]) -> str:
        """Takes in what there is; returns the version to watch from, or nothing where the kind is not served."""
        try:
            found, version = await client.list_with_version(self.resource, self.namespace, None, self.fields)
        except NotFound:
            found, version = [], ""
        self.objects = {obj["metadata"]["name"]: obj for obj in found}
        self.known, self.trouble = True, None
        tell()
        return version

    async def _watch(self, client: Client, version: str, tell: Callable[[], None]) -> None:
        stream = client.watch(self.resource, self.namespace, None, self.fields, version)
        async with aclosing(stream):
            async for kind, obj in stream:
                if kind in ("ADDED", "MODIFIED"):
                    self.objects[obj["metadata"]["name"]] = obj
                elif kind == "DELETED":
                    self.objects.pop(obj["metadata"]["name"], None)
                else:
                    continue
                tell()
