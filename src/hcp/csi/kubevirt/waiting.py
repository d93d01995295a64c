"""Waiting for one object of the infra cluster by its watch, for as long as a caller waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from hcp.kube import Client, Resource
from hcp.kube.follow import follow

Object = dict[str, Any]


class Late(Exception):
    """Not true in time; `last` is how the object was then."""

    def __init__(self, last: Object | None) -> None:
        super().__init__("late")
        self.last = last


async def until(
    client: Client,
    resource: Resource,
    name: str,
    ns: str,
    judge: Callable[[Object | None], bool],
    seconds: float,
) -> Object | None:
    """The object once `judge` is content with it, which may also raise."""
    last: Object | None = None
    try:
        async with asyncio.timeout(seconds), aclosing(follow(client, resource, name, ns)) as changes:
            async for last in changes:
                if judge(last):
                    return last
    except TimeoutError as exc:
        raise Late(last) from exc
    raise Late(last)
