"""What `hcp doctor` says about shards of the operator."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hcp.install import operator
from hcp.install.options import Options
from hcp.preflight.shards import count_of, judge
from hcp.runtime.shards import lease_name

NOW = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def lease(number: int, holder: str, ago: int = 1) -> dict[str, Any]:
    renewed = (NOW - dt.timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"metadata": {"name": lease_name(number)}, "spec": {"holderIdentity": holder, "renewTime": renewed}}


def test_the_number_is_that_of_the_deployment() -> None:
    assert count_of(operator.deployment(Options())) == 1
    assert count_of(operator.deployment(Options(shards=3))) == 3
    assert count_of({}) == 1


def test_who_works_on_what_is_told() -> None:
    found = judge(3, [lease(0, "operator-a"), lease(1, "operator-b"), lease(2, "operator-a")], NOW)
    assert (found.state, found.message) == ("ok", "3, by 2 processes: 0 operator-a, 1 operator-b, 2 operator-a")


def test_a_shard_that_nobody_works_on_is_told() -> None:
    """Given back, never taken, or held by a process that is gone."""
    found = judge(4, [lease(0, "operator-a"), lease(1, ""), lease(3, "operator-b", ago=600)], NOW)
    assert found.state == "warning"
    assert "nobody works on shards 1, 2, 3 of 4" in found.message
    assert found.hint
