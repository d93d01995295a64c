"""Conditions in a status: set, read, and keep the time of the last real change."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api.paths import at

Condition = dict[str, Any]
# What a condition shall say: status, reason, message.
Verdict = tuple[bool | str, str, str]
# The API refuses longer messages.
MAX_MESSAGE = 32768


def now() -> str:
    """This moment as Kubernetes writes it."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def set_condition(
    conds: Iterable[Mapping[str, Any]] | None,
    type: str,
    status: str | bool,
    reason: str,
    message: str = "",
    generation: int | None = None,
    *,
    at: str | None = None,
) -> list[Condition]:
    """A new list with this condition in it, order kept; `lastTransitionTime` moves only when the status does."""
    text = {True: "True", False: "False"}[status] if isinstance(status, bool) else status
    wanted: Condition = {"type": type, "status": text, "reason": reason, "message": message[:MAX_MESSAGE]}
    if generation is not None:
        wanted["observedGeneration"] = generation
    result = [dict(c) for c in conds or ()]
    for i, have in enumerate(result):
        if have.get("type") == type:
            same = have.get("status") == text and have.get("lastTransitionTime")
            result[i] = {**wanted, "lastTransitionTime": have["lastTransitionTime"] if same else at or now()}
            return result
    return [*result, {**wanted, "lastTransitionTime": at or now()}]


def get_condition(conds: Iterable[Mapping[str, Any]] | None, type: str) -> Mapping[str, Any] | None:
    return next((c for c in conds or () if c.get("type") == type), None)


def is_true(conds: Iterable[Mapping[str, Any]] | None, type: str) -> bool:
    return (get_condition(conds, type) or {}).get("status") == "True"


def is_false(conds: Iterable[Mapping[str, Any]] | None, type: str) -> bool:
    return (get_condition(conds, type) or {}).get("status") == "False"


def remove_condition(conds: Iterable[Mapping[str, Any]] | None, type: str) -> list[Condition]:
    return [dict(c) for c in conds or () if c.get("type") != type]


def condition_of(obj: Mapping[str, Any] | None, type: str) -> Mapping[str, Any] | None:
    """One condition of an object."""
    return get_condition(at(obj, "status.conditions"), type)


def with_verdicts(
    conds: Iterable[Mapping[str, Any]] | None, verdicts: Mapping[str, Verdict | None], generation: int, stamp: str
) -> list[Condition]:
    """A new list that says all of these; a verdict of None takes its condition away."""
    result = [dict(c) for c in conds or ()]
    for type, verdict in verdicts.items():
        if verdict is None:
            result = remove_condition(result, type)
        else:
            result = set_condition(result, type, *verdict, generation, at=stamp)
    return result
