"""Phases of a pass."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hcp.errors import HcpError
from hcp.runtime import Phase, Phases, PhasesFailed, Result, Waiting
from hcp.runtime.phases import DURATION, ERRORS

Scope = list[str]
Run = Callable[[Scope], Awaitable[Result | None]]


def does(name: str, error: Exception | None = None, result: Result | None = None) -> Run:
    async def run(scope: Scope) -> Result | None:
        scope.append(name)
        if error is not None:
            raise error
        return result

    return run


async def test_phases_run_in_order_and_the_soonest_requeue_counts() -> None:
    scope: Scope = []
    phases = Phases("p1", [Phase("a", does("a", result=Result(9))), Phase("b", does("b", result=Result(3)))])
    report = await phases.run(scope)
    assert scope == report.done == ["a", "b"]
    assert report.ok
    assert report.result == Result(3)
    report.raise_if_failed()
    assert DURATION.count(controller="p1", phase="a") == 1


async def test_a_critical_failure_blocks_what_follows_but_not_what_always_runs() -> None:
    scope: Scope = []
    phases = Phases(
        "p2",
        [
            Phase("pki", does("pki")),
            Phase("etcd", does("etcd", HcpError("No disk", hint="Buy one."))),
            Phase("api", does("api")),
            Phase("status", does("status"), always=True),
        ],
    )
    report = await phases.run(scope)
    assert scope == ["pki", "etcd", "status"]
    assert report.blocked == ["api"]
    with pytest.raises(PhasesFailed) as caught:
        report.raise_if_failed()
    assert caught.value.sentence == "etcd: No disk (not tried: api)"
    assert caught.value.hint == "Buy one."
    assert ERRORS.value(controller="p2", phase="etcd") == 1


async def test_a_side_piece_may_fail_without_stopping_the_pass() -> None:
    scope: Scope = []
    broken = HcpError("No key")
    phases = Phases("p3", [Phase("ssh", does("ssh", broken), critical=False), Phase("api", does("api"))])
    report = await phases.run(scope)
    assert scope == ["ssh", "api"]
    assert report.done == ["api"]
    with pytest.raises(HcpError) as caught:
        report.raise_if_failed()
    assert caught.value is broken


async def test_waiting_is_no_error_and_holds_back_the_rest() -> None:
    scope: Scope = []
    waiting = Waiting("NoAddress", "The service has no address yet.")
    report = await Phases("p4", [Phase("address", does("address", waiting)), Phase("api", does("api"))]).run(scope)
    assert scope == ["address"]
    assert (report.ok, report.errors, report.blocked) == (False, {}, ["api"])
    assert report.waiting["address"].reason == "NoAddress"
    report.raise_if_failed()


async def test_a_group_runs_at_the_same_time() -> None:
    both = asyncio.Barrier(2)

    async def meet(_: Scope) -> None:
        await both.wait()

    async with asyncio.timeout(30):
        phases = Phases[Scope]("p5", [(Phase("one", meet), Phase("two", meet)), Phase("end", does("end"))])
        report = await phases.run([])
    assert sorted(report.done) == ["end", "one", "two"]


def test_names_must_differ() -> None:
    with pytest.raises(ValueError, match="differ"):
        Phases("p6", [Phase("a", does("a")), Phase("a", does("a"))])
