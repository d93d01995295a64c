"""Phases of a pass."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from hcp.errors import HcpError
from hcp.runtime import Facts, Failed, Phase, Phases, PhasesFailed, Waiting
from hcp.runtime.phases import DURATION, ERRORS

Scope = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Found(Facts):
    word: str


Run = Callable[[Scope], Awaitable[Found | None]]
Steps = list[Phase[Scope, Found] | tuple[Phase[Scope, Found], ...]]


def learn(scope: Scope, facts: Found) -> Scope:
    return (*scope, facts.word)


def phases(name: str, steps: Steps) -> Phases[Scope, Found]:
    return Phases(name, steps, learn)


def does(word: str, error: Exception | None = None, again: float | None = None) -> Run:
    async def run(_: Scope) -> Found:
        if error is not None:
            raise error
        return Found(word=word, again=again)

    return run


async def test_phases_run_in_order_and_the_soonest_wish_to_look_again_counts() -> None:
    scope, report = await phases("p1", [Phase("a", does("a", again=9)), Phase("b", does("b", again=3))]).run(())
    assert scope == ("a", "b") == tuple(report.done)
    assert report.ok
    assert report.again == 3
    report.raise_if_failed()
    assert DURATION.count(controller="p1", phase="a") == 1


async def test_a_critical_failure_blocks_what_follows_but_not_what_always_runs() -> None:
    steps: Steps = [
        Phase("pki", does("pki")),
        Phase("etcd", does("etcd", HcpError("No disk", hint="Buy one."))),
        Phase("api", does("api")),
        Phase("status", does("status"), always=True),
    ]
    scope, report = await phases("p2", steps).run(())
    assert scope == ("pki", "status")
    assert report.blocked == ["api"]
    with pytest.raises(PhasesFailed) as caught:
        report.raise_if_failed()
    assert caught.value.sentence == "etcd: No disk (not tried: api)"
    assert caught.value.hint == "Buy one."
    assert ERRORS.value(controller="p2", phase="etcd") == 1


async def test_a_side_piece_may_fail_without_stopping_the_pass() -> None:
    broken = HcpError("No key")
    steps: Steps = [Phase("ssh", does("ssh", broken), critical=False), Phase("api", does("api"))]
    scope, report = await phases("p3", steps).run(())
    assert scope == ("api",)
    assert report.done == ["api"]
    with pytest.raises(HcpError) as caught:
        report.raise_if_failed()
    assert caught.value is broken


async def test_waiting_is_no_error_holds_back_the_rest_and_says_when_to_look_again() -> None:
    waiting = Waiting("The service has no address yet.", again=7, facts=Found(word="no address"))
    scope, report = await phases("p4", [Phase("address", does("", waiting)), Phase("api", does("api"))]).run(())
    assert scope == ("no address",)
    assert (report.ok, report.errors, report.blocked) == (False, {}, ["api"])
    assert report.again == 7
    report.raise_if_failed()


async def test_an_error_can_carry_facts() -> None:
    broken = HcpError("The registry is away")
    scope, report = await phases("p7", [Phase("release", does("", Failed(broken, Found(word="unread"))))]).run(())
    assert scope == ("unread",)
    assert report.errors == {"release": broken}


async def test_a_group_runs_at_the_same_time_and_sees_nothing_of_its_neighbours() -> None:
    both = asyncio.Barrier(2)
    seen: list[Scope] = []

    def meet(word: str) -> Run:
        async def run(scope: Scope) -> Found:
            await both.wait()
            seen.append(scope)
            return Found(word=word)

        return run

    async with asyncio.timeout(30):
        steps: Steps = [(Phase("one", meet("one")), Phase("two", meet("two"))), Phase("end", does("end"))]
        scope, report = await phases("p5", steps).run(("start",))
    assert sorted(report.done) == ["end", "one", "two"]
    assert seen == [("start",), ("start",)]
    assert scope == ("start", "one", "two", "end")


def test_names_must_differ() -> None:
    with pytest.raises(ValueError, match="differ"):
        phases("p6", [Phase("a", does("a")), Phase("a", does("a"))])
