"""Which requests to the API of a cluster that sleeps wake it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from hcp.api import names
from hcp.hostedcluster import wake_requests
from hcp.runtime import hibernation

NOW = dt.datetime(2026, 3, 11, 22, tzinfo=dt.UTC)
FELL = "2026-03-11T19:00:00Z"
ON = {names.ANNOTATION_WAKE_ON_REQUEST: "true", names.ANNOTATION_HIBERNATE: "true@2026-03-11T18:59:00Z"}


def cluster(annotations: dict[str, str] | None = None, stage: str = "Asleep", **spec: Any) -> dict[str, Any]:
    sleeps = {"type": "Hibernating", "status": "True", "reason": stage, "lastTransitionTime": FELL}
    found = ON if annotations is None else annotations
    metadata = {"annotations": found, "resourceVersion": "7"}
    return {"metadata": metadata, "spec": spec, "status": {"conditions": [sleeps] if stage else []}}


def route(since: str | None = FELL, asked: str | None = FELL) -> dict[str, Any]:
    marks = {names.MARK_SLEEPS_SINCE: since, names.MARK_ASKED_FOR: asked}
    return {"metadata": {"annotations": {key: value for key, value in marks.items() if value}}}


def woken(patch: dict[str, Any] | None) -> str | None:
    return None if patch is None else str(patch["metadata"]["annotations"][names.ANNOTATION_WOKEN])


def test_a_request_that_was_made_in_this_sleep_ends_it() -> None:
    patch = wake_requests.patch_for(cluster(), route(), NOW)
    assert woken(patch) == "2026-03-11T22:00:00Z"
    assert patch is not None
    assert patch["metadata"]["resourceVersion"] == "7", "whoever puts it to sleep again meanwhile is not overruled"
    after = {**ON, names.ANNOTATION_WOKEN: str(woken(patch))}
    assert not hibernation.wish(after, NOW).asleep
    assert wake_requests.patch_for(cluster(after), route(), NOW) is None, "once"


@pytest.mark.parametrize(
    ("found", "marked"),
    [
        (cluster(), None),
        (cluster(), route(asked=None)),
        (cluster(), route(asked="2026-03-10T19:00:00Z")),
        (cluster(), route("2026-03-10T19:00:00Z", "2026-03-10T19:00:00Z")),
        (cluster(), route(None, FELL)),
        (cluster({names.ANNOTATION_HIBERNATE: "true"}), route()),
        (cluster({**ON, names.ANNOTATION_WAKE_ON_REQUEST: "no"}), route()),
        (cluster({**ON, names.ANNOTATION_HIBERNATE: "false"}), route()),
        (cluster({**ON, names.ANNOTATION_HIBERNATE: "true@2026-03-11T20:00:00Z"}), route()),
        (cluster(stage=""), route()),
        (cluster(stage="FallingAsleep"), route()),
        (cluster(stage="WakingUp"), route()),
        (cluster(pausedUntil="true"), route()),
    ],
    ids=[
        "no Route",
        "nobody asked",
        "asked in an earlier sleep",
        "the mark is of an earlier sleep",
        "no mark",
        "its owner does not want it",
        "cannot be read",
        "it wakes anyway",
        "put to sleep once more since",
        "never slept",
        "falls asleep",
        "asked to sleep again while it wakes",
        "paused",
    ],
)
def test_what_wakes_nobody(found: dict[str, Any], marked: dict[str, Any] | None) -> None:
    assert wake_requests.patch_for(found, marked, NOW) is None


def test_what_ended_a_sleep_is_forgotten_when_nobody_asks_for_it_any_more() -> None:
    """Else the next `true` without a date, as clusters in Git have it, would put nobody to sleep."""
    woke = {**ON, names.ANNOTATION_HIBERNATE: "true", names.ANNOTATION_WOKEN: "2026-03-11T20:00:00Z"}
    assert wake_requests.patch_for(cluster(woke, stage="Awake"), None, NOW) is None
    for said in ({names.ANNOTATION_HIBERNATE: "false"}, {names.ANNOTATION_HIBERNATE: ""}):
        patch = wake_requests.patch_for(cluster({**woke, **said}, stage="Awake"), None, NOW)
        assert patch == {"metadata": {"annotations": {names.ANNOTATION_WOKEN: None}, "resourceVersion": "7"}}
        assert wake_requests.patch_for(cluster({**ON, **said}, stage="Awake"), None, NOW) is None, "once"
    assert wake_requests.patch_for(cluster({**woke, **said}, stage="Awake", pausedUntil="true"), None, NOW) is None


def test_a_clock_that_is_ahead_keeps_nobody_asleep() -> None:
    """Of whoever put it to sleep: the request was made after it, whatever the clocks say."""
    ahead = {**ON, names.ANNOTATION_HIBERNATE: "true@2026-03-12T05:00:00Z"}
    since = wake_requests.mark(cluster(ahead), None)
    assert since == "2026-03-12T05:00:00Z"
    patch = wake_requests.patch_for(cluster(ahead), route(since, since), NOW)
    assert not hibernation.wish({**ahead, names.ANNOTATION_WOKEN: str(woken(patch))}, NOW).asleep


def test_the_mark_is_there_from_falling_asleep_to_being_awake() -> None:
    assert wake_requests.mark(cluster(), None) == FELL
    assert wake_requests.mark(cluster(stage="WakingUp"), route()) == FELL
    assert wake_requests.mark(cluster(stage="WakingUp"), None) == ""
    for stage in ("", "FallingAsleep", "Awake"):
        assert wake_requests.mark(cluster(stage=stage), route()) == ""
    assert wake_requests.mark(cluster({}), route()) == ""


def test_what_has_no_effect_is_told() -> None:
    assert wake_requests.problem({}, "LoadBalancer") == ""
    assert wake_requests.problem(ON, "Route") == ""
    assert "published by NodePort" in wake_requests.problem(ON, "NodePort")
    assert "write true or false" in wake_requests.problem({names.ANNOTATION_WAKE_ON_REQUEST: "yes"}, "Route")
    assert not wake_requests.possible(ON, "LoadBalancer")
