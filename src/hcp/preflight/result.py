"""What a check found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

OK = "ok"
WARN = "warning"
FAIL = "failed"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report: what was looked at, how it is, and what to do when it is not good."""

    check: str
    state: str
    message: str
    hint: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


def ok(check: str, message: str) -> Finding:
    return Finding(check, OK, message)


def warn(check: str, message: str, hint: str = "") -> Finding:
    return Finding(check, WARN, message, hint)


def fail(check: str, message: str, hint: str = "") -> Finding:
    return Finding(check, FAIL, message, hint)


def unknown(check: str, message: str, hint: str = "") -> Finding:
    """Could not be looked at, for example because it is not allowed."""
    return Finding(check, UNKNOWN, message, hint)


def failed(findings: Iterable[Finding]) -> bool:
    return any(one.state == FAIL for one in findings)
