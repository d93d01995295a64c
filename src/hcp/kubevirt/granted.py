"""Which of the rights that are needed somebody else's cluster does not grant."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from hcp.kube import Client, Resource

_AT_ONCE = 10


class Right(Protocol):
    """Verbs on some resources of one group."""

    @property
    def group(self) -> str: ...
    @property
    def resources(self) -> tuple[str, ...]: ...
    @property
    def verbs(self) -> tuple[str, ...]: ...


async def missing(client: Client, rights: Iterable[Right], namespace: str | None) -> list[str]:
    """`verb resource` for everything that is needed and not granted, as the server itself answers."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(right: Right, name: str, verb: str) -> str:
        plural, _, sub = name.partition("/")
        async with slots:
            allowed = await client.allowed(verb, Resource(right.group, "v1", plural, ""), namespace, sub)
        full = f"{name}.{right.group}" if right.group else name
        return "" if allowed else f"{verb} {full}"

    asked = [one(right, name, verb) for right in rights for name in right.resources for verb in right.verbs]
    return [word for word in await asyncio.gather(*asked) if word]


def short(words: Iterable[str], most: int = 8) -> str:
    """The first of them, and how many more."""
    found = list(words)
    shown = ", ".join(found[:most])
    return shown if len(found) <= most else f"{shown} and {len(found) - most} more"
