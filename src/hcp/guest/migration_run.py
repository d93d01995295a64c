"""Storing everything anew after a new Kubernetes minor, a little at a time.

API servers read what their predecessors stored, for some minors. Who never stores it anew finds objects after years
that no API server can read any more.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from hcp.guest.migration_record import Move, Record
from hcp.guest.rewrite import LONGEST, Page, rewrite_page
from hcp.guest.stored_versions import defined_kinds, own_kinds, trim
from hcp.kube import Client
from hcp.kube.errors import Forbidden, Invalid, ServerFailure
from hcp.kube.resources import Resource

Save = Callable[[Record], Awaitable[None]]


@dataclass(frozen=True)
class Progress:
    """How it stands after some work."""

    record: Record
    count: int = 0
    # Time was over before the last kind.
    more: bool = False


async def migrate(client: Client, record: Record, move: Move, save: Save, *, seconds: float) -> Progress:
    """Go on from `record` for at most about `seconds`; `save` is called with whatever the next one should know."""
    return await _Run(client, record.following(move), save, time.monotonic() + seconds).run()


class _Run:
    def __init__(self, client: Client, record: Record, save: Save, end: float) -> None:
        self._client = client
        self._record = record
        self._save = save
        self._end = end
        self._count = 0
        # Of this round: what was refused in an earlier one is tried again.
        self._refused = dict(record.refused) if record.kind else {}

    async def run(self) -> Progress:
        if self._record.complete:
            return Progress(self._record)
        for kind in await own_kinds(self._client):
            name = kind.resource.full_name
            if self._record.done.get(name) == kind.written:
                continue
            if not await self._all_of(kind.resource, name):
                return Progress(self._record, self._count, more=True)
            if name not in self._refused:
                self._record = self._record.with_done(name, kind.written)
        # The definition itself remembers in which versions its objects lie.
        for defined in await defined_kinds(self._client):
            if not await self._all_of(defined.resource, defined.name):
                return Progress(self._record, self._count, more=True)
            if defined.name not in self._refused and not await trim(self._client, defined):
                self._refused[defined.name] = "the definition was changed meanwhile"
        self._record = replace(
            self._record, complete=not self._refused, kind="", after="", refused=_shown(self._refused)
        )
        await self._save(self._record)
        return Progress(self._record, self._count)

    async def _all_of(self, resource: Resource, name: str) -> bool:
        """Every page of a kind; False when time is over before."""
        after = self._record.after if self._record.kind == name else ""
        while True:
            page = await self._page(resource, after)
            self._count += page.count
            for why in page.refused[:1]:
                self._refused.setdefault(name, why)
            after = page.after
            if not after:
                return True
            if time.monotonic() > self._end:
                self._record = replace(self._record, kind=name, after=after, refused=_shown(self._refused))
                await self._save(self._record)
                return False

    async def _page(self, resource: Resource, after: str) -> Page:
        """A kind that cannot even be listed, for the lack of who converts it, holds up none of the others."""
        try:
            return await rewrite_page(self._client, resource, after)
        except (Forbidden, Invalid, ServerFailure) as error:
            return Page(0, refused=((error.cause or str(error))[:LONGEST],))


def _shown(refused: dict[str, str]) -> dict[str, str]:
    return dict(sorted(refused.items()))
