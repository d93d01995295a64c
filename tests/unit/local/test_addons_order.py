"""Steps of `up` go on at once where they do not need each other, and end together when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hcp.local.addons import steps
from hcp.local.addons.order import Step, run_all
from hcp.local.state.request import UpRequest


class Trace:
    """What began and what ended, in order; a step ends when it is let go."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.free: dict[str, asyncio.Event] = {}

    def step(self, name: str, *needs: str, changed: bool = True, error: Exception | None = None) -> Step:
        self.free[name] = asyncio.Event()

        async def run() -> bool:
            self.said.append(f"{name} begins")
            try:
                await self.free[name].wait()
            except asyncio.CancelledError:
                self.said.append(f"{name} is ended")
                raise
            if error is not None:
                raise error
            self.said.append(f"{name} ends")
            return changed

        return Step(name, run, needs)

    def let(self, *names: str) -> None:
        for name in names:
            self.free[name].set()


def _run(play: Callable[[Trace], Awaitable[Any]]) -> Trace:
    trace = Trace()
    asyncio.run(asyncio.wait_for(play(trace), 60))
    return trace


async def _settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_step_begins_as_soon_as_what_it_needs_is_done() -> None:
    async def play(trace: Trace) -> None:
        running = asyncio.create_task(
            run_all(
                [
                    trace.step("node"),
                    trace.step("core", "node"),
                    trace.step("virt", "node"),
                    trace.step("all", "core", "virt"),
                ]
            )
        )
        await _settled()
        assert trace.said == ["node begins"]
        trace.let("node")
        await _settled()
        assert trace.said[1:] == ["node ends", "core begins", "virt begins"]
        trace.let("virt")
        await _settled()
        assert "all begins" not in trace.said
        trace.let("core", "all")
        assert await running

    assert _run(play).said[-2:] == ["all begins", "all ends"]


@pytest.mark.parametrize("changed", [False, True])
def test_it_says_whether_any_step_had_to_do_something(changed: bool) -> None:
    async def play(trace: Trace) -> None:
        found = [trace.step("one", changed=changed), trace.step("two", "one", changed=False)]
        trace.let("one", "two")
        assert await run_all(found) is changed
        assert not await run_all([])

    assert _run(play).said[-1] == "two ends"


def test_a_failure_ends_what_goes_on_beside_it_and_begins_nothing() -> None:
    async def play(trace: Trace) -> None:
        found = [trace.step("long"), trace.step("bad", error=ValueError("bad")), trace.step("next", "bad")]
        trace.let("bad")
        with pytest.raises(ValueError, match="bad"):
            await run_all(found)

    assert _run(play).said == ["long begins", "bad begins", "long is ended"]


def test_what_a_step_says_while_it_is_ended_does_not_hide_why() -> None:
    async def trouble() -> bool:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise OSError("no goodbye") from None
        return True

    async def play(trace: Trace) -> None:
        bad = trace.step("bad", error=ValueError("the reason"))
        trace.let("bad")
        with pytest.raises(ValueError, match="the reason"):
            await run_all([Step("rude", trouble), bad])

    _run(play)


def test_who_is_stopped_stops_every_step() -> None:
    async def play(trace: Trace) -> None:
        running = asyncio.create_task(run_all([trace.step("one"), trace.step("two"), trace.step("three", "one")]))
        await _settled()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    assert _run(play).said == ["one begins", "two begins", "one is ended", "two is ended"]


def test_needs_that_are_not_in_the_list_are_no_needs_and_a_wrong_order_is_refused() -> None:
    async def play(trace: Trace) -> None:
        alone = trace.step("one", "absent")
        trace.let("one")
        assert await run_all([alone])
        with pytest.raises(ValueError, match="one stands before two"):
            await run_all([trace.step("one", "two"), trace.step("two")])
        with pytest.raises(ValueError, match="two steps are called one"):
            await run_all([trace.step("one"), trace.step("one")])

    _run(play)


def _needs(**facts: Any) -> dict[str, tuple[str, ...]]:
    known = {"profile": "kubevirt", "has_metallb": False, "has_storage": False, "has_mirrors": False, "has_olm": False}
    request = facts.pop("request", UpRequest())
    ctx: Any = SimpleNamespace(spec=SimpleNamespace(**known | facts), request=request)
    return {step.name: step.needs for step in steps.steps(ctx, None)}  # type: ignore[arg-type]


def test_kubevirt_starts_beside_the_add_ons_and_releases_come_last() -> None:
    assert _needs() == {
        "node": (),
        "core": ("node",),
        "virtualization": ("node",),
        "releases": ("core", "virtualization"),
    }
    assert _needs(profile="cluster") == {"node": (), "core": ("node",)}
    assert _needs(request=UpRequest(until_node=True)) == {"node": ()}


def test_extras_come_one_after_the_other_and_cdi_is_told_when_it_is_there() -> None:
    found = _needs(has_metallb=True, has_storage=True, has_olm=True)
    assert found["metallb"] == ("core",)
    assert found["storage"] == ("metallb",)
    assert found["olm"] == ("storage",)
    assert set(found["CDI"]) == {"storage", "virtualization"}
    assert set(found["releases"]) == {"olm", "virtualization"}
