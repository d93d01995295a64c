"""Several components at a time: what runs beside what, and what happens when one of them fails."""

from __future__ import annotations

import threading

import pytest
from tests.support.unit.workshop import Workshop

from hcp.errors import HcpError
from hcp.payload import BuildContext, Component
from hcp.payload.parallel import Slots, startable


def _component(name: str, *deps: str, compiles: bool = True) -> Component:
    return Component(name, "1", lambda ctx: None, deps, compiles=compiles)


def _names(components: list[Component]) -> list[str]:
    return [component.name for component in components]


def test_compilers_and_others_have_lanes_of_their_own() -> None:
    waiting = [_component("a"), _component("b"), _component("disk", compiles=False), _component("c")]
    assert _names(startable(waiting, [], [], Slots(compiling=2, others=1))) == ["a", "b", "disk"]
    assert _names(startable(waiting[1:], waiting[:1], [], Slots(compiling=1, others=1))) == ["disk"]


def test_nothing_starts_before_what_it_is_made_of() -> None:
    base, top = _component("base"), _component("top", "base", "present before")
    assert _names(startable([base, top], [], [], Slots(2, 2))) == ["base"]
    assert startable([top], [base], [], Slots(2, 2)) == []
    assert _names(startable([top], [], ["base"], Slots(2, 2))) == ["top"]


def test_what_waits_for_servers_runs_beside_a_compiler(workshop: Workshop) -> None:
    both = threading.Barrier(2, timeout=30)

    def meet(ctx: BuildContext) -> None:
        both.wait()

    workshop.add("compiled", compiles=True, during=meet)
    workshop.add("fetched", during=meet)
    workshop.engine().ensure(["compiled", "fetched"])
    assert sorted(workshop.built) == ["compiled", "fetched"]


def test_an_error_ends_what_runs_beside_it_and_nothing_new_begins(workshop: Workshop) -> None:
    running = threading.Event()

    def long(ctx: BuildContext) -> None:
        running.set()
        ctx.run(["sleep", "600"])

    def fail(ctx: BuildContext) -> None:
        assert running.wait(30)
        raise HcpError("the mirror is down")

    workshop.add("compiled", compiles=True, during=long)
    workshop.add("fetched", during=fail)
    workshop.add("later", deps=("fetched",))
    with pytest.raises(HcpError, match="the mirror is down"):
        workshop.engine().ensure(["compiled", "fetched", "later"])
    assert sorted(workshop.built) == ["compiled", "fetched"]
    assert workshop.engine().find("compiled") is None
