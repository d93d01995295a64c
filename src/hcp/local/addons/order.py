"""Steps that begin as soon as what they need is done: those that do not need each other go on at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One thing to do. `run` says whether anything had to be done."""

    name: str
    run: Callable[[], Awaitable[bool]]
    needs: tuple[str, ...] = ()
    """Names of steps that have to be done before; of those that are not in the list nothing is needed."""


async def run_all(steps: Sequence[Step]) -> bool:
    """Does all of them and says whether any had to do something.

    Nothing begins after a failure: what goes on is cancelled, and the failure is raised when all have ended. Each step
    stands behind those that it needs, so none can wait for itself.
    """
    running: dict[str, asyncio.Task[bool]] = {}
    for step in steps:
        if step.name in running:
            raise ValueError(f"two steps are called {step.name}")
        later = {other.name for other in steps} - running.keys()
        if later.intersection(step.needs):
            raise ValueError(f"{step.name} stands before {', '.join(sorted(later.intersection(step.needs)))}")
        before = [running[name] for name in step.needs if name in running]
        running[step.name] = asyncio.create_task(_after(before, step), name=step.name)
    tasks = list(running.values())
    if not tasks:
        return False
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    # What others say while they are ended is not why they were.
    for task in tasks:
        if task in ended and not task.cancelled():
            task.result()
    return any(task.result() for task in tasks)


async def _after(before: Sequence[asyncio.Task[bool]], step: Step) -> bool:
    """Waits for what the step needs; where that fails it never begins."""
    if before:
        await asyncio.wait(before)
    if any(task.cancelled() or task.exception() for task in before):
        raise asyncio.CancelledError
    return await step.run()
