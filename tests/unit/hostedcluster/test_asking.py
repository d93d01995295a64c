"""Questions to servers of others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hcp.hostedcluster.asking import Asking

CLUSTER = {"metadata": {"namespace": "clusters", "name": "demo"}}


class Broken(Asking[str, str]):
    """What comes is not what anybody thought of."""

    asked = 0

    async def answer(self, cluster: dict[str, Any], question: str) -> tuple[str, float]:
        self.asked += 1
        if self.asked == 1:
            raise AttributeError("'str' object has no attribute 'get'")
        return "known", 1.0


async def test_an_answer_that_nobody_can_read_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hcp.hostedcluster.asking.AGAIN", 0.0)
    ended = asyncio.Event()
    asking = Broken(lambda _key: ended.set())
    async with asyncio.timeout(60):
        while not ended.is_set():
            asking.look(CLUSTER, "what is it?")
            await asyncio.sleep(0)
    assert asking.look(CLUSTER, "what is it?")[0] == "known"
    assert asking.asked == 2
    await asking.close()
