"""Durations as Go programs write them in annotations and fields: 1h30m, 45s, 250ms."""

from __future__ import annotations

import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ms|h|m|s)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)


def parse(text: str) -> float | None:
    """Seconds; None for what cannot be read."""
    if text == "0":
        return 0.0
    if not _WHOLE.fullmatch(text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
