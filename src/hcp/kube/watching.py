"""The wire format of a watch: one JSON object per line, ended by the server from time to time."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from hcp.kube import bounded_json, errors
from hcp.kube.errors import Call

# The server sends a bookmark about every minute: two and a half minutes of silence mean the stream is dead.
TIMEOUT = aiohttp.ClientTimeout(total=None, connect=10, sock_read=150)


def selectors(labels: str | None, fields: str | None) -> dict[str, str]:
    """The query for label and field selectors."""
    params = {}
    if labels:
        params["labelSelector"] = labels
    if fields:
        params["fieldSelector"] = fields
    return params


def parameters(labels: str | None, fields: str | None, resource_version: str | None) -> dict[str, str]:
    """The query of a watch request. Streams end after five to ten minutes, spread out so they do not end at once."""
    params = selectors(labels, fields)
    params["watch"] = "true"
    params["allowWatchBookmarks"] = "true"
    params["timeoutSeconds"] = str(random.randint(300, 600))  # noqa: S311 - not a secret
    if resource_version:
        params["resourceVersion"] = resource_version
    return params


async def lines(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Split a stream at newlines; an object may be megabytes long, so no line limit."""
    pending: list[bytes] = []
    async for chunk in stream.iter_any():
        first, *rest = chunk.split(b"\n")
        pending.append(first)
        for piece in rest:
            line = b"".join(pending)
            pending = [piece]
            if line:
                yield line
    if last := b"".join(pending):
        yield last


async def events(
    call: Call, stream: aiohttp.StreamReader, *, custom: bool = True
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Parse a watch stream; an ERROR event becomes the exception it describes."""
    async for line in lines(stream):
        try:
            event = bounded_json.loads(line, custom=custom)
        except ValueError:
            return  # the connection was cut within a line: the watch is over, the caller continues from what it has
        kind, obj = event.get("type"), event.get("object") or {}
        if kind == "ERROR":
            raise errors.from_status(call, int(obj.get("code") or 500), obj)
        yield kind, obj
