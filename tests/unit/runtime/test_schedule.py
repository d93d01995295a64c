"""Cron expressions: which dates they mean, and which are refused."""

from __future__ import annotations

import datetime as dt

import pytest

from hcp.errors import HcpError
from hcp.runtime import schedule

NOON = dt.datetime(2026, 3, 14, 12, 0, 30, tzinfo=dt.UTC)  # a Saturday


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 3 * * *", "2026-03-15T03:00"),
        ("*/20 * * * *", "2026-03-14T12:20"),
        ("0 12 * * *", "2026-03-15T12:00"),
        ("5,50 12-13 * * *", "2026-03-14T12:05"),
        ("0 4 * * 1", "2026-03-16T04:00"),
        ("0 4 * * 7", "2026-03-15T04:00"),
        ("0 0 1 1 *", "2027-01-01T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("0 0 20 * 0", "2026-03-15T00:00"),
        ("30/10 * * * *", "2026-03-14T12:30"),
    ],
)
def test_the_next_date(text: str, expected: str) -> None:
    assert schedule.parse(text).after(NOON).strftime("%Y-%m-%dT%H:%M") == expected


@pytest.mark.parametrize("text", ["", "daily", "60 * * * *", "* * * *", "5-1 * * * *", "*/0 * * * *", "0 0 31 2 *"])
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(HcpError):
        schedule.parse(text)
