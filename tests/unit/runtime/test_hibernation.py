"""Whether a cluster shall sleep: by what somebody asked, and by schedules."""

from __future__ import annotations

import datetime as dt

import pytest

from hcp.api import names
from hcp.runtime import hibernation, schedule

DOWN, UP, ASKED, ZONE = (
    names.ANNOTATION_HIBERNATE_SCHEDULE,
    names.ANNOTATION_WAKE_SCHEDULE,
    names.ANNOTATION_HIBERNATE,
    names.ANNOTATION_HIBERNATE_TIME_ZONE,
)
WOKEN = names.ANNOTATION_WOKEN
WORKDAYS = {DOWN: "0 19 * * 1-5", UP: "0 7 * * 1-5"}


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("annotations", "now", "asleep", "until"),
    [
        ({}, "2026-03-11T12:00", False, None),
        ({ASKED: "true"}, "2026-03-11T12:00", True, None),
        ({ASKED: "true@2026-03-11T11:00:00Z"}, "2026-03-11T12:00", True, None),
        ({ASKED: "false"}, "2026-03-11T12:00", False, None),
        # A Wednesday.
        (WORKDAYS, "2026-03-11T12:00", False, "2026-03-11T19:00"),
        (WORKDAYS, "2026-03-11T19:00", True, "2026-03-12T07:00"),
        (WORKDAYS, "2026-03-11T06:59", True, "2026-03-11T07:00"),
        (WORKDAYS, "2026-03-11T07:00", False, "2026-03-11T19:00"),
        # A weekend.
        (WORKDAYS, "2026-03-14T12:00", True, "2026-03-16T07:00"),
        # Woken in the night, until the next evening; put to sleep at noon, until the next morning.
        ({**WORKDAYS, ASKED: "false@2026-03-11T22:00:00Z"}, "2026-03-11T23:00", False, "2026-03-12T19:00"),
        ({**WORKDAYS, ASKED: "false@2026-03-11T22:00:00Z"}, "2026-03-12T20:00", True, "2026-03-13T07:00"),
        ({**WORKDAYS, ASKED: "true@2026-03-11T12:00:00Z"}, "2026-03-11T13:00", True, "2026-03-12T07:00"),
        ({**WORKDAYS, ASKED: "true@2026-03-11T12:00:00Z"}, "2026-03-12T08:00", False, "2026-03-12T19:00"),
        # A request wakes it until the next evening, and counts for no later sleep.
        ({ASKED: "true@2026-03-11T11:00:00Z", WOKEN: "2026-03-11T11:30:00Z"}, "2026-03-11T12:00", False, None),
        ({ASKED: "true@2026-03-11T11:00:00Z", WOKEN: "2026-03-11T10:30:00Z"}, "2026-03-11T12:00", True, None),
        ({ASKED: "true", WOKEN: "2026-03-11T10:30:00Z"}, "2026-03-11T12:00", False, None),
        ({ASKED: "true", WOKEN: "yesterday"}, "2026-03-11T12:00", True, None),
        ({WOKEN: "2026-03-11T10:30:00Z"}, "2026-03-11T12:00", False, None),
        ({**WORKDAYS, WOKEN: "2026-03-11T22:00:00Z"}, "2026-03-11T23:00", False, "2026-03-12T19:00"),
        ({**WORKDAYS, WOKEN: "2026-03-11T22:00:00Z"}, "2026-03-12T19:00", True, "2026-03-13T07:00"),
        ({**WORKDAYS, WOKEN: "2026-03-14T12:00:00Z"}, "2026-03-15T12:00", False, "2026-03-16T19:00"),
        (
            {**WORKDAYS, ASKED: "true@2026-03-11T23:00:00Z", WOKEN: "2026-03-11T22:00:00Z"},
            "2026-03-11T23:30",
            True,
            "2026-03-12T07:00",
        ),
        ({**WORKDAYS, ASKED: "true", WOKEN: "2026-03-11T22:00:00Z"}, "2026-03-12T12:00", False, "2026-03-12T19:00"),
        ({**WORKDAYS, ASKED: "true", WOKEN: "2026-03-11T22:00:00Z"}, "2026-03-12T20:00", True, None),
        # Without a date it holds, whatever the schedule says.
        ({**WORKDAYS, ASKED: "false"}, "2026-03-14T12:00", False, None),
        ({**WORKDAYS, ZONE: "Europe/Berlin"}, "2026-03-11T18:30", True, "2026-03-12T06:00"),
        ({**WORKDAYS, ZONE: "Europe/Berlin"}, "2026-07-01T17:30", True, "2026-07-02T05:00"),
    ],
)
def test_what_holds_at_a_moment(annotations: dict[str, str], now: str, asleep: bool, until: str | None) -> None:
    found = hibernation.wish(annotations, at(now))
    assert (found.asleep, found.until, found.problem) == (asleep, at(until) if until else None, "")


@pytest.mark.parametrize(
    ("annotations", "now", "called"),
    [
        ({ASKED: "true", WOKEN: "2026-03-11T22:00:00Z"}, "2026-03-11T23:00", True),
        ({ASKED: "false", WOKEN: "2026-03-11T22:00:00Z"}, "2026-03-11T23:00", False),
        ({**WORKDAYS, WOKEN: "2026-03-11T22:00:00Z"}, "2026-03-11T23:00", True),
        # The schedule wakes it two mornings later, not the request of the night before.
        ({**WORKDAYS, WOKEN: "2026-03-11T22:00:00Z"}, "2026-03-13T07:00", False),
    ],
)
def test_only_the_sleep_that_a_request_ended_was_ended_by_it(
    annotations: dict[str, str], now: str, called: bool
) -> None:
    assert hibernation.wish(annotations, at(now)).called is called


@pytest.mark.parametrize(
    ("annotations", "outlived"),
    [
        ({ASKED: "true"}, False),
        ({ASKED: "true", WOKEN: "x"}, False),
        ({ASKED: "true@noon", WOKEN: "x"}, False),
        ({WOKEN: "x"}, True),
        ({ASKED: "false", WOKEN: "x"}, True),
        ({**WORKDAYS, ASKED: "false", WOKEN: "x"}, True),
        # A request of this night counts, whatever was asked at noon.
        ({**WORKDAYS, WOKEN: "x"}, False),
        ({**WORKDAYS, ASKED: "false@2026-03-11T12:00:00Z", WOKEN: "x"}, False),
    ],
)
def test_a_request_is_forgotten_where_it_can_count_for_nothing(annotations: dict[str, str], outlived: bool) -> None:
    assert hibernation.outlived(annotations) is outlived


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({ASKED: "yes"}, "write true or false"),
        ({ASKED: "true@noon"}, "write true or false"),
        ({DOWN: "0 19 * * *"}, "wake-schedule is missing"),
        ({UP: "0 19 * * *"}, "hibernate-schedule is missing"),
        ({DOWN: "19:00", UP: "7:00"}, "is not a schedule"),
        ({**WORKDAYS, ZONE: "Mars/Base"}, "the time zone 'Mars/Base' is not known"),
        ({**WORKDAYS, ZONE: "../../etc/passwd"}, "is not known"),
        ({DOWN: "0 7 * * *", UP: "0 7 * * *"}, "the same dates"),
    ],
)
def test_what_cannot_be_read_is_told_and_keeps_nobody_asleep(annotations: dict[str, str], said: str) -> None:
    found = hibernation.wish(annotations, at("2026-03-11T12:00"))
    assert said in found.problem
    assert not found.asleep


def test_a_date_is_the_last_one_before_and_the_first_one_after() -> None:
    plan = schedule.parse("30 8 * * 1")
    assert plan.before(at("2026-03-16T08:30")) == at("2026-03-16T08:30")
    assert plan.before(at("2026-03-16T08:29")) == at("2026-03-09T08:30")


def test_a_clock_that_jumps_loses_no_date() -> None:
    annotations = {DOWN: "0 19 * * *", UP: "30 2 * * *", ZONE: "Europe/Berlin"}
    # 02:30 does not exist there on 29 March 2026.
    found = hibernation.wish(annotations, at("2026-03-29T00:00"))
    assert (found.asleep, found.until) == (True, at("2026-03-29T01:30"))
