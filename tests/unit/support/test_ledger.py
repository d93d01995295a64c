"""The check of ledgers finds every broken promise: a check that cannot fail would prove nothing."""

from __future__ import annotations

import pytest
from tests.support.e2e.ledger import Ledger


def ledger() -> Ledger:
    found = Ledger("t", counted=4, tried=5)
    found.made = {"t-1": 10, "t-2": 12, "t-4": 20}
    found.deleted = {"t-1"}
    found.unsure = {"t-3"}
    return found


@pytest.mark.parametrize("there", [{"t-2": 12, "t-4": 20}, {"t-2": 12, "t-3": 15, "t-4": 20}])
@pytest.mark.parametrize("counter", [4, 5])
def test_what_was_answered_holds_and_what_was_not_may_be_either(there: dict[str, int], counter: int) -> None:
    assert ledger().problems(there, counter) == []


@pytest.mark.parametrize(
    ("there", "counter", "problem"),
    [
        ({"t-4": 20}, 4, "t-2 was acknowledged and is lost"),
        ({"t-1": 10, "t-2": 12, "t-4": 20}, 4, "t-1 was deleted and is back"),
        ({"t-2": 12, "t-4": 20, "t-9": 30}, 4, "t-9 was never asked for"),
        ({"t-2": 12, "t-4": 20}, 3, "the counter is 3, not 4 or more"),
        ({"t-2": 12, "t-4": 20}, 6, "the counter is 6, not 4 or more"),
    ],
)
def test_a_broken_promise_is_found(there: dict[str, int], counter: int, problem: str) -> None:
    assert ledger().problems(there, counter) == [problem]


def test_acknowledged_writes_in_another_order_are_found() -> None:
    found = ledger()
    found.made["t-4"] = 11
    assert found.problems({"t-2": 12, "t-4": 11}, 4) == ["acknowledged writes have versions in another order"]


def test_a_counter_that_was_read_must_hold_like_one_that_was_acknowledged() -> None:
    found = ledger()
    found.read(5)
    assert found.problems({"t-2": 12, "t-4": 20}, 5) == []
    assert found.problems({"t-2": 12, "t-4": 20}, 4) == ["the counter is 4, not 5 or more"]


def test_a_counter_that_goes_back_meanwhile_is_found() -> None:
    found = ledger()
    found.read(3)
    assert found.problems({"t-2": 12, "t-4": 20}, 4) == ["the counter went back from 4 to 3"]
