"""Reading backups: what a list shows of one, and whether all of it is what was written."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from hcp.backup import objects
from hcp.backup.content import Bytes, Reader, Whole
from hcp.backup.naming import Name
from hcp.backup.objects import Kept
from hcp.backup.sealing import LONGEST_HEADER, BrokenBackup, Lock
from hcp.backup.stores.base import Store


async def told(store: Store, name: Name) -> tuple[Mapping[str, Any], str]:
    """What the first line of a backup says, and how it is encrypted."""
    async with aclosing(_chunks(store, name, LONGEST_HEADER)) as chunks:
        header = await Bytes(chunks).header()
    return header.told, header.kind


async def whole(store: Store, name: Name, lock: Lock) -> tuple[Whole, Kept]:
    """Read to its end once; from then on everything in it is known to be genuine and fit to be written."""
    async with aclosing(_chunks(store, name)) as chunks:
        found = await Reader(lock, chunks).read()
    told = found.header.told
    if told.get("cluster") != f"{name.namespace}/{name.cluster}":
        raise BrokenBackup("the backup is refused", cause="its name is of another cluster than its content")
    if told.get("created") != name.told_time:
        raise BrokenBackup("the backup is refused", cause="its name is of another time than its content")
    return found, objects.accept(found.objects, name.namespace, name.cluster)


async def snapshot(store: Store, name: Name, lock: Lock) -> AsyncIterator[bytes]:
    """Only the snapshot of etcd, piece by piece; an error at the end means that it is not genuine."""
    async with aclosing(_chunks(store, name)) as chunks, aclosing(Reader(lock, chunks).snapshot()) as pieces:
        async for piece in pieces:
            yield piece


async def _chunks(store: Store, name: Name, most: int = 0) -> AsyncGenerator[bytes, None]:
    async for chunk in store.reading(name, most):
        yield chunk
