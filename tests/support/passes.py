"""Passes of controllers that run inside the test: a test of steadiness proves nothing where no pass ran."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from tests.support.eventually import eventually

from hcp.runtime.controller import RESULTS


@contextlib.asynccontextmanager
async def a_pass(*controllers: str) -> AsyncIterator[None]:
    """Leave the block only when each of these controllers has ended a pass that began in it, or later."""
    before = {name: _ended(name) for name in controllers}
    yield

    async def ran() -> bool:
        return all(_ended(name) > count for name, count in before.items())

    await eventually(ran, f"a pass of {', '.join(controllers)}")


def _ended(controller: str) -> float:
    return RESULTS.value(controller=controller, result="success")
