"""What a check found."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from dataclasses import asdict, dataclass

from hcp.errors import HcpError

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


async def safely(check: str, work: Awaitable[Finding]) -> Finding:
    """One that fails to run does not hide the others."""
    try:
        return await work
    except HcpError as error:
        return unknown(check, str(error), error.hint or "")


def failed(findings: Iterable[Finding]) -> bool:
    return any(one.state == FAIL for one in findings)
