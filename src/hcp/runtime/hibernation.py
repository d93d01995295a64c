"""Whether a hosted cluster shall sleep, and how far it is. Pure.

The wish is in annotations: what somebody asked last, two schedules, and when a request to its API last woke it. The
stage is the reason of the condition `Hibernating`, which the HostedCluster's passes move on; everybody else goes by it,
so that no two parts of the operator ever have another opinion.
"""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hcp.api import conditions as c
from hcp.api.names import (
    ANNOTATION_HIBERNATE,
    ANNOTATION_HIBERNATE_SCHEDULE,
    ANNOTATION_HIBERNATE_TIME_ZONE,
    ANNOTATION_WAKE_ON_REQUEST,
    ANNOTATION_WAKE_SCHEDULE,
    ANNOTATION_WOKEN,
)
from hcp.errors import HcpError, sentence
from hcp.runtime import schedule
from hcp.runtime.conditions import condition_of
from hcp.runtime.schedule import Schedule

# Not to be touched: neither its inside nor its machines are what they look like.
RESTING = (c.FALLING_ASLEEP, c.ASLEEP, c.WAKING_UP)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for now, until when by itself, and what of it cannot be read."""

    asleep: bool = False
    until: dt.datetime | None = None
    problem: str = ""
    # Whether a request to its API ended the sleep that would hold otherwise.
    called: bool = False

    def seconds(self, now: dt.datetime) -> float | None:
        """Time until the schedule asks for something else."""
        return None if self.until is None else max((self.until - now).total_seconds(), 0.0) + 0.5


def stage(cluster: Mapping[str, Any] | None) -> str:
    """How far it is; empty for a cluster that never slept."""
    return str((condition_of(cluster, c.HIBERNATING) or {}).get("reason") or "")


def resting(cluster: Mapping[str, Any] | None) -> bool:
    """Whether it sleeps, falls asleep or has not come back yet."""
    return stage(cluster) in RESTING


def sleeping(cluster: Mapping[str, Any] | None) -> bool:
    """Whether it sleeps or falls asleep: nobody looks inside."""
    return stage(cluster) in (c.FALLING_ASLEEP, c.ASLEEP)


def asked(asleep: bool, now: dt.datetime) -> str:
    """What somebody asks for at this moment, as the annotation has it."""
    return f"{'true' if asleep else 'false'}@{stamp(now)}"


def stamp(date: dt.datetime) -> str:
    return f"{date.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%SZ}"


def wakes_on_request(annotations: Mapping[str, str]) -> bool:
    """Whether its owner lets anybody wake it who connects to its API."""
    return annotations.get(ANNOTATION_WAKE_ON_REQUEST) == "true"


def asked_at(annotations: Mapping[str, str]) -> dt.datetime | None:
    """When somebody last asked for it to sleep or to wake, as far as it can be read."""
    try:
        return _said(annotations.get(ANNOTATION_HIBERNATE, ""))[1]
    except HcpError:
        return None


def wish(annotations: Mapping[str, str], now: dt.datetime) -> Wish:
    """What holds at this moment. What cannot be read asks for nothing: such a cluster stays awake."""
    try:
        return _wish(annotations, now)
    except HcpError as exc:
        return Wish(problem=sentence(exc))


def read_schedules(annotations: Mapping[str, str]) -> tuple[Schedule, Schedule] | None:
    """When it falls asleep and when it wakes; None without a schedule."""
    texts = [annotations.get(key, "") for key in (ANNOTATION_HIBERNATE_SCHEDULE, ANNOTATION_WAKE_SCHEDULE)]
    if not any(texts):
        return None
    if not all(texts):
        lacking = ANNOTATION_WAKE_SCHEDULE if texts[0] else ANNOTATION_HIBERNATE_SCHEDULE
        raise HcpError(f"annotation {lacking} is missing: a schedule says both when to sleep and when to wake")
    zone = _zone(annotations.get(ANNOTATION_HIBERNATE_TIME_ZONE, "") or "UTC")
    down, up = (replace(schedule.parse(text), zone=zone) for text in texts)
    if down == up:
        raise HcpError("the schedules to sleep and to wake name the same dates")
    return down, up


def _wish(annotations: Mapping[str, str], now: dt.datetime) -> Wish:
    plans = read_schedules(annotations)
    said, since = _said(annotations.get(ANNOTATION_HIBERNATE, ""))
    woken = date_of(annotations.get(ANNOTATION_WOKEN, ""))
    if plans is None:
        # A request counts for the sleep it ended, not for one that was asked for later.
        called = woken is not None and (since is None or woken >= since)
        return Wish(asleep=said is True and not called, called=said is True and called)
    down, up = plans
    slept, woke = down.before(now), up.before(now)
    called = woken is not None and woken >= max(slept, since or slept)
    if said is not None and since is None:
        # Without a date it holds whatever the schedule says; a request, until its next evening.
        return Wish(said and not called, down.after(now) if said and called else None, called=said and called)
    asleep, latest = slept > woke, max(slept, woke)
    if said is not None and since is not None and since > latest:
        asleep = said
    called, asleep = asleep and called, asleep and not called
    return Wish(asleep, (up if asleep else down).after(now), called=called)


def outlived(annotations: Mapping[str, str]) -> bool:
    """Whether nobody asks any more for the sleep that a request ended: kept, it would count for the next one too."""
    if ANNOTATION_WOKEN not in annotations:
        return False
    try:
        said, since = _said(annotations.get(ANNOTATION_HIBERNATE, ""))
        planned = read_schedules(annotations) is not None
    except HcpError:
        return False
    return (said is False and since is None) or (said is not True and not planned)


def date_of(text: str) -> dt.datetime | None:
    """A date as it is written in annotations; None for what is none."""
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def _said(text: str) -> tuple[bool | None, dt.datetime | None]:
    """What a person asked for, and when; `true` and `false`, with `@date` where the next date of a schedule ends it."""
    if not text:
        return None, None
    word, at, date = text.partition("@")
    since = date_of(date) if at else None
    if word not in ("true", "false") or (at and since is None):
        raise HcpError(f"annotation {ANNOTATION_HIBERNATE} is {text!r}; write true or false, with @date where wanted")
    return word == "true", since


def _zone(name: str) -> dt.tzinfo:
    if name == "UTC":
        return dt.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise HcpError(
            f"the time zone {name!r} is not known", hint="Write one like Europe/Berlin or America/Sao_Paulo, or UTC."
        ) from None
