"""A plan is the same every time, whichever registry answers first."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

from hcp.mirror.plan import Blocked, Item
from hcp.mirror.scope import Scope
from hcp.mirror.sources import Sources


async def test_images_are_planned_in_the_order_they_were_named(tmp_path: Path) -> None:
    second_is_known = asyncio.Event()

    async def first() -> list[Item]:
        await second_is_known.wait()
        return [Item("additional", "a.example.com/team/web:1", "sha256:aa", "team/web", "1")]

    async def second() -> list[Item]:
        second_is_known.set()
        return [Item("additional", "b.example.com/team/web:1", "sha256:bb", "team/web", "1")]

    scope = Scope(cast(Sources, None), tmp_path, Blocked(()))
    await scope.add_all([first(), second()])
    named, other = scope.plan.items
    assert (named.source, named.tag) == ("a.example.com/team/web:1", "1")
    assert other.tag != "1"  # the first keeps the tag that both would have
