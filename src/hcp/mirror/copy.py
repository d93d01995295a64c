"""Sending a plan's images: parts before what names them, and one that fails does not stop the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from hcp.errors import HcpError
from hcp.mirror.plan import Item, Plan, Problem
from hcp.mirror.workspace import DiskError
from hcp.oci.image import Image
from hcp.oci.push import Pusher, together
from hcp.oci.push_errors import PushError
from hcp.publish.target import Target

# Called with how many images are done, of how many, and which one it was.
Step = Callable[[int, int, str], None]
Load = Callable[[Item], Awaitable[Image]]
# So many refusals by the target, before it took anything, end a run.
REFUSALS = 3
# How many images are looked for at once: more than are copied, since looking moves nothing.
LOOKS = 16


@dataclass
class Copied:
    """What a run did."""

    sent: list[Item] = field(default_factory=list)
    present: list[Item] = field(default_factory=list)

    @property
    def done(self) -> int:
        return len(self.sent) + len(self.present)


class Destination(Protocol):
    """Where images go: a registry, or the store that archives are made from."""

    async def has(self, item: Item) -> bool: ...

    async def put(self, item: Item) -> None: ...


@dataclass
class RegistryDestination:
    """`load` opens an item where it comes from, once it is known to be missing."""

    pusher: Pusher
    target: Target
    load: Load

    async def has(self, item: Item) -> bool:
        return await self.pusher.digest(self.target.repository(item.repository), item.tag) == item.digest

    async def put(self, item: Item) -> None:
        await self.pusher.push_image(await self.load(item), self.target.repository(item.repository), [item.tag])


class Copier:
    def __init__(self, to: Destination, step: Step, *, parallel: int = 4, seconds: float = 600.0) -> None:
        self._to = to
        self._step = step
        self._slots = asyncio.Semaphore(parallel)
        self._looks = asyncio.Semaphore(max(parallel, LOOKS))
        self._seconds = seconds
        self._copied = Copied()
        self._total = 0
        self._refused = 0
        self._failed: set[str] = set()

    async def run(self, plan: Plan) -> Copied:
        self._total = len(plan.items)
        # A part of a release that could not even be found.
        incomplete = {problem.what.rpartition(" of ")[2] for problem in plan.problems if " of " in problem.what}
        for last in (False, True):
            await together(self._one(item, plan, incomplete) for item in plan.items if item.last == last)
        return self._copied

    async def missing(self, plan: Plan) -> list[Item]:
        """What is not there yet."""

        async def lacks(item: Item) -> bool:
            return not await self._has(item)

        found = await together(lacks(item) for item in plan.items)
        return [item for item, lacking in zip(plan.items, found, strict=True) if lacking]

    async def _one(self, item: Item, plan: Plan, incomplete: set[str]) -> None:
        name = f"{item.repository}:{item.tag}"
        try:
            if await self._has(item):
                self._copied.present.append(item)
            else:
                self._whole(item, incomplete)
                async with self._slots, asyncio.timeout(self._seconds):
                    await self._to.put(item)
                self._copied.sent.append(item)
        except DiskError:
            raise
        except (HcpError, TimeoutError) as error:
            if isinstance(error, PushError):
                self._refused += 1
                if not self._copied.done and self._refused >= min(REFUSALS, self._total):
                    raise  # the target takes nothing: no use in asking for each image
            self._failed.add(item.group)
            plan.problems.append(Problem.of(item.kind, item.source or name, self._said(item, error)))
            return
        self._step(self._copied.done, self._total, name)

    async def _has(self, item: Item) -> bool:
        async with self._looks:
            return await self._to.has(item)

    def _whole(self, item: Item, incomplete: set[str]) -> None:
        """Whoever finds a release must find all it names."""
        release = " ".join(item.group.split()[:2])
        if item.last and item.group and (item.group in self._failed or release in incomplete):
            raise HcpError(
                f"{item.source} is not mirrored, since not all images it names are there",
                hint="run it again when they can be had: what has arrived is not sent again",
            )

    def _said(self, item: Item, error: HcpError | TimeoutError) -> HcpError:
        if isinstance(error, HcpError):
            return error
        return HcpError(
            f"{item.source} was not mirrored within {self._seconds:g} s",
            hint="--image-timeout gives it longer; running it again goes on",
        )
