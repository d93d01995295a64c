"""What planning shares: where images are read, what is left out, and the plan that grows."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hcp.errors import HcpError
from hcp.mirror.plan import Blocked, Item, Kind, Plan, Problem, tag_for
from hcp.mirror.sources import Sources
from hcp.oci.push import together
from hcp.oci.reference import Reference
from hcp.oci.trust import Trust


@dataclass
class Scope:
    sources: Sources
    # Where images that are made here (filtered catalogs, the graph) are kept.
    made: Path
    blocked: Blocked
    plan: Plan = field(default_factory=Plan)
    # For what is fetched like any file.
    trust: Trust = field(default_factory=Trust)
    with_signatures: bool = True
    ignore_release_signatures: bool = False

    @contextlib.contextmanager
    def problems(self, kind: Kind, what: str) -> Iterator[None]:
        """What goes wrong inside is noted, and the rest goes on."""
        try:
            yield
        except HcpError as error:
            self.plan.problems.append(Problem.of(kind, what, error))

    async def add_all(self, work: Iterable[Coroutine[Any, Any, list[Item]]]) -> None:
        """All are asked at once; what the plan is does not depend on who answers first."""
        for items in await together(work):
            self.add(items)

    def add(self, items: Iterable[Item]) -> None:
        for item in items:
            self.plan.add(item)

    async def found(
        self,
        kind: Kind,
        text: str,
        *,
        repository: str = "",
        tag: str = "",
        group: str = "",
        last: bool = False,
        signed: bool = True,
    ) -> list[Item]:
        """One image of a registry, unless it is blocked; its signatures too."""
        ref = Reference.parse(text)
        if self.blocked.has(ref):
            return []
        digest = await self.sources.digest(ref)
        where = repository or ref.repository
        items = [Item(kind, str(ref), digest, where, tag or tag_for(ref, digest), group=group, last=last)]
        if signed and self.with_signatures:
            found = await self.sources.signature(ref, digest)
            if found is not None:
                beside, signature = found
                items.append(Item(kind, str(beside), signature, where, str(beside.tag), silent=True, group=group))
        return items
