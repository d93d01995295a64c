"""The shape of a reconcile: which steps, in which order, and what is written."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from hcp.api.pause import Pause
from hcp.errors import HcpError
from hcp.kube.errors import NotFound
from hcp.runtime import Facts, Phase, Phases, Report, Result, Waiting
from hcp.runtime.informer import Informer
from hcp.runtime.reconcile import Kind, Reconciler, status_patch

Object = dict[str, Any]
Steps = list[str]
DAY = dt.timedelta(days=1)


class Store:
    """Stands where the informer and its client stand: remembers what is written."""

    def __init__(self, obj: Object | None, *, gone: bool = False) -> None:
        self.obj = obj
        self.gone = gone
        self.written: list[Object] = []
        self.client = self
        self.resource = "things"

    def get_key(self, _key: str) -> Object | None:
        return self.obj

    async def patch(self, _resource: str, _name: str, _ns: str, body: Object, **_: Any) -> Object:
        if self.gone:
            raise NotFound("gone", status=404)
        assert body.pop("metadata") == {"resourceVersion": "7"}, "it names what it replaces"
        self.written.append(body)
        return {**(self.obj or {}), **body}

    def observe(self, made: Object) -> None:
        self.obj = made


class Thing(Kind[Steps, Facts]):
    steady = 3600.0

    def __init__(self, store: Store, error: Exception | None = None) -> None:
        self.store = store
        self.error = error
        self.steps: Steps = []

    @property
    def informer(self) -> Informer:
        return self.store  # type: ignore[return-value]

    def gone(self, key: str) -> None:
        self.steps.append(f"gone {key}")

    async def delete(self, obj: Object, now: dt.datetime) -> Result | None:
        self.steps.append("delete")
        return Result(5)

    async def adopt(self, obj: Object) -> Object | None:
        self.steps.append("adopt")
        return None if obj.get("foreign") else obj

    async def scope(self, obj: Object, rest: Pause, now: dt.datetime) -> Steps:
        self.steps.append("paused scope" if rest.paused else "scope")
        return []

    def phases(self, scope: Steps) -> Phases[Steps, Facts]:
        async def run(_: Steps) -> None:
            self.steps.append("phase")
            if self.error is not None:
                raise self.error

        return Phases("thing", [Phase("one", run)], lambda known, _: known)

    def compute(self, obj: Object, scope: Steps, report: Report, now: str) -> Object:
        self.steps.append("compute")
        return {"done": report.done, "failed": sorted(report.errors)}

    async def written(self, scope: Steps, before: Object, after: Object) -> None:
        self.steps.append("written")


def thing(**fields: Any) -> Object:
    return {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "7"}, "spec": {}, **fields}


async def test_the_steps_come_in_order_and_end_in_one_patch() -> None:
    kind = Thing(Store(thing()))
    result = await Reconciler(kind)("n/a")
    assert kind.steps == ["adopt", "scope", "phase", "compute", "written"]
    assert kind.store.written == [{"status": {"done": ["one"], "failed": []}}]
    assert result == Result(3600.0)


async def test_nothing_is_written_when_nothing_changed() -> None:
    kind = Thing(Store(thing(status={"done": ["one"], "failed": []})))
    await Reconciler(kind)("n/a")
    assert kind.steps[-1] == "written" and kind.store.written == []


async def test_an_object_that_is_gone_is_forgotten() -> None:
    kind = Thing(Store(None))
    assert await Reconciler(kind)("n/a") is None
    assert kind.steps == ["gone n/a"]


async def test_an_object_that_goes_is_only_deleted() -> None:
    obj = thing()
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    kind = Thing(Store(obj))
    assert await Reconciler(kind)("n/a") == Result(5)
    assert kind.steps == ["delete"]


async def test_an_object_that_is_not_ours_to_touch_is_left_alone() -> None:
    kind = Thing(Store(thing(foreign=True)))
    assert await Reconciler(kind)("n/a") is None
    assert kind.steps == ["adopt"] and kind.store.written == []


async def test_a_paused_object_is_looked_at_again_when_its_pause_ends() -> None:
    until = dt.datetime.now(dt.UTC) + DAY
    kind = Thing(Store(thing(spec={"pausedUntil": until.isoformat()})))
    result = await Reconciler(kind)("n/a")
    assert "paused scope" in kind.steps
    assert result is not None and result.requeue_after is not None
    assert 3600 < result.requeue_after <= DAY.total_seconds()


async def test_a_failed_phase_is_in_the_status_before_it_is_tried_again() -> None:
    kind = Thing(Store(thing()), HcpError("broken"))
    with pytest.raises(HcpError, match="broken"):
        await Reconciler(kind)("n/a")
    assert kind.store.written == [{"status": {"done": [], "failed": ["one"]}}]


async def test_whoever_waits_says_when_to_look_again() -> None:
    kind = Thing(Store(thing()), Waiting("not yet", again=7.0))
    assert await Reconciler(kind)("n/a") == Result(7.0)


async def test_an_object_that_went_during_the_pass_is_told_to_nobody() -> None:
    kind = Thing(Store(thing(), gone=True))
    await Reconciler(kind)("n/a")
    assert kind.steps[-1] == "compute"


def test_the_patch_takes_away_what_is_no_more() -> None:
    assert status_patch({"a": 1, "b": 2}, {"a": 1, "c": 3}) == {"status": {"b": None, "c": 3}}
    assert status_patch({"a": 1}, {"a": 1}) is None
    before = {"block": {"kept": 1, "gone": 2, "deep": {"gone": [1]}}, "list": [{"x": 1, "y": 2}]}
    after = {"block": {"kept": 1, "deep": {}}, "list": [{"x": 1}]}
    assert status_patch(before, after) == {
        "status": {"block": {"gone": None, "deep": {"gone": None}}, "list": [{"x": 1}]}
    }
