"""Numbers that annotations give to the processes of a control plane. Pure.

A process that cannot read its command line does not start: what is no such number is left out, and said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hcp.api import names


@dataclass(frozen=True, slots=True)
class Number:
    """What a value has to look like, and how that is said."""

    pattern: re.Pattern[str]
    words: str


_LEVEL = Number(re.compile(r"10|[0-9]"), "a number from 0 to 10")
_REQUESTS = Number(re.compile(r"[0-9]{1,6}"), "a number of requests")
KNOWN = {
    names.ANNOTATION_KAS_VERBOSITY: _LEVEL,
    names.ANNOTATION_KCM_VERBOSITY: _LEVEL,
    names.ANNOTATION_SCHEDULER_VERBOSITY: _LEVEL,
    names.ANNOTATION_KAS_MAX_INFLIGHT: _REQUESTS,
    names.ANNOTATION_KAS_MAX_MUTATING_INFLIGHT: _REQUESTS,
    names.ANNOTATION_KAS_GOAWAY_CHANCE: Number(re.compile(r"0(\.0[0-9]{0,8})?|0?\.0[12][0-9]{0,8}"), "0 to 0.02"),
    names.ANNOTATION_KAS_GOGC: Number(re.compile(r"off|[1-9][0-9]{0,3}"), "a percentage such as 75, or off"),
    names.ANNOTATION_KAS_GOMEMLIMIT: Number(re.compile(r"[1-9][0-9]{0,14}([KMGT]i)?B?"), "a size such as 900MiB"),
}


def value(annotations: Mapping[str, str], key: str, default: str) -> str:
    """What the annotation says, if it can be meant."""
    given = annotations.get(key) or ""
    return given if KNOWN[key].pattern.fullmatch(given) else default


def problems(annotations: Mapping[str, str]) -> list[str]:
    """Values that are left out, each with what would be one."""
    found = []
    for key, number in KNOWN.items():
        given = annotations.get(key) or ""
        if given and not number.pattern.fullmatch(given):
            found.append(f"annotation {key}: {given[:50]!a} is not {number.words}")
    return found
