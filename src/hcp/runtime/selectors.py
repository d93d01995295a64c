"""Label selectors, so that a cache of some objects knows whether a given one belongs to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]
_SET = re.compile(r"^(\S+)\s+(in|notin)\s*\(([^)]*)\)$")
_SPLIT = re.compile(r",(?![^(]*\))")


def matches(selector: str | None, obj: Mapping[str, Any]) -> bool:
    """Whether an object's labels fit a selector as the API writes it."""
    if not selector:
        return True
    labels: Labels = (obj.get("metadata") or {}).get("labels") or {}
    return all(test(labels) for test in _tests(selector))


@lru_cache(maxsize=256)
def _tests(selector: str) -> tuple[Test, ...]:
    return tuple(_test(part.strip()) for part in _SPLIT.split(selector))


def _test(part: str) -> Test:
    found = _SET.match(part)
    if found:
        key, operator, text = found.groups()
        values = {value.strip() for value in text.split(",")}
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if part.startswith("!"):
        absent = part[1:].strip()
        return lambda labels: absent not in labels
    for operator in ("!=", "==", "="):
        key, equals, value = (text.strip() for text in part.partition(operator))
        if equals:
            if operator == "!=":
                return lambda labels: labels.get(key) != value
            return lambda labels: labels.get(key) == value
    return lambda labels: part in labels
