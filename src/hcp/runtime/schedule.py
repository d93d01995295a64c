"""Dates that come again: the five fields of cron, in UTC or another time zone."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from hcp.errors import HcpError

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
# 29 February on a given weekday comes every 28 years; anything not found until then never comes.
_FARTHEST_DAYS = 366 * 28


@dataclass(frozen=True, slots=True)
class Schedule:
    """The allowed values of each field."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    # As cron has it: when both are restricted, either may match.
    either_day: bool = False
    # Whose clock is meant. An hour that a clock skips comes right after it, one that comes twice counts the first time.
    zone: dt.tzinfo = dt.UTC

    def after(self, moment: dt.datetime) -> dt.datetime:
        """The first date after this one."""
        start = moment.astimezone(dt.UTC).replace(second=0, microsecond=0) + dt.timedelta(minutes=1)
        today = moment.astimezone(self.zone).date()
        for offset in range(_FARTHEST_DAYS):
            for found in self._on(today + dt.timedelta(days=offset)):
                if found >= start:
                    return found
        raise HcpError("The schedule names no date that ever comes")

    def before(self, moment: dt.datetime) -> dt.datetime:
        """The last date that is not after this one."""
        today = moment.astimezone(self.zone).date()
        for offset in range(_FARTHEST_DAYS):
            for found in reversed(self._on(today - dt.timedelta(days=offset))):
                if found <= moment:
                    return found
        raise HcpError("The schedule names no date that ever came")

    def _on(self, day: dt.date) -> list[dt.datetime]:
        """Its moments on one day, in order, as UTC."""
        if not self._matches(day):
            return []
        times = [dt.time(hour, minute) for hour in self.hours for minute in self.minutes]
        return sorted(dt.datetime.combine(day, time, self.zone).astimezone(dt.UTC) for time in times)

    def _matches(self, day: dt.date) -> bool:
        by_day, by_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return day.month in self.months and (by_day or by_week if self.either_day else by_day and by_week)


def parse(text: str) -> Schedule:
    """Read `minute hour day month weekday`; each is `*`, a number, a range, a list, with `/step` where wanted."""
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise HcpError(
            f"{text!r} is not a schedule: it has {len(parts)} fields instead of five",
            hint="Write minute, hour, day, month and weekday, for example `0 3 * * *` for every day at 03:00 UTC.",
        )
    values = [_values(part, *field) for part, field in zip(parts, _FIELDS, strict=True)]
    weekdays = frozenset(day % 7 for day in values[4])
    either = parts[2] != "*" and parts[4] != "*"
    found = Schedule(values[0], values[1], values[2], values[3], weekdays, either)
    found.after(dt.datetime(2024, 1, 1, tzinfo=dt.UTC))
    return found


def _values(text: str, name: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        try:
            begin, end = (low, high) if span == "*" else (int(first), int(last) if dash else int(first))
            every = int(step) if step else 1
        except ValueError:
            raise HcpError(f"{part!r} is not a {name}") from None
        if step and not dash and span != "*":
            end = high
        if not low <= begin <= end <= high or every < 1:
            raise HcpError(f"{part!r} is not a {name} between {low} and {high}")
        found.update(range(begin, end + 1, every))
    return frozenset(found)
