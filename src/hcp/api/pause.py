"""`pausedUntil` of HostedClusters and NodePools: a date, or true and false. Pure."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from hcp.api import conditions as c


@dataclass(frozen=True, slots=True)
class Pause:
    """Whether reconciliation rests, until when, and whether the value could be read."""

    paused: bool = False
    until: dt.datetime | None = None
    problem: str = ""

    def seconds(self, now: dt.datetime) -> float | None:
        """Time until it ends by itself."""
        return max((self.until - now).total_seconds(), 0.0) if self.paused and self.until else None

    def verdict(self) -> tuple[bool, str, str]:
        """Status, reason and message of the condition ReconciliationActive."""
        if self.problem:
            return True, c.INVALID_PAUSED_UNTIL, self.problem
        if self.paused:
            until = self.until.isoformat() if self.until else "the field is removed"
            return False, c.RECONCILIATION_PAUSED, f"Reconciliation is paused until {until}"
        return True, c.AS_EXPECTED, "Reconciliation active on resource"


def parse(value: str | None, now: dt.datetime) -> Pause:
    if not value:
        return Pause()
    if value.lower() in ("true", "false"):
        return Pause(paused=value.lower() == "true")
    try:
        until = dt.datetime.fromisoformat(value)
    except ValueError:
        return Pause(problem=f"pausedUntil {value} is neither true, false nor a date like 2030-01-31T12:00:00Z")
    if until.tzinfo is None:
        until = until.replace(tzinfo=dt.UTC)
    return Pause(paused=until > now, until=until)
