"""When a guest's objects are stored anew, and what is known of it between passes."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from hcp.guest.migration_record import Move, Record, load, save
from hcp.guest.migration_run import migrate
from hcp.kube import Client

log = logging.getLogger(__name__)
# At a time: what else is kept true in this guest waits for it.
SECONDS = 20.0
# What was refused is somebody's webhook or rule; it is tried again at this pace.
AGAIN = 3600.0
_MOST_TOLD = 5


@dataclass(frozen=True)
class Told:
    """For the status: how it stands with the minor."""

    minor: str
    complete: bool
    # What the server does not store as it is.
    refused: str = ""


@dataclass
class State:
    """What is known of one guest."""

    record: Record | None = None
    more: bool = False
    refused_at: float = 0.0

    def told(self, move: Move | None) -> Told | None:
        """None while nothing is known, or nothing was asked for."""
        if move is None or self.record is None:
            return None
        if self.record.mark != move.mark:
            return Told(move.minor, False)
        refused = [f"{kind}: {why}" for kind, why in self.record.refused.items()]
        more = [f"and {len(refused) - _MOST_TOLD} kinds more"] if len(refused) > _MOST_TOLD else []
        return Told(move.minor, self.record.complete, "; ".join([*refused[:_MOST_TOLD], *more]))

    @property
    def rests(self) -> bool:
        return self.refused_at > 0.0 and time.monotonic() - self.refused_at < AGAIN


async def step(management: Client, guest: Client, namespace: str, move: Move, state: State) -> bool:
    """Some of the work, if there is any; says whether the status may be another afterwards."""
    news = state.record is None
    known = await load(management, namespace) if state.record is None else state.record
    state.record = known
    if known.mark == move.mark and (known.complete or state.rests):
        return news
    progress = await migrate(guest, known, move, lambda record: save(management, namespace, record), seconds=SECONDS)
    state.record, state.more = progress.record, progress.more
    state.refused_at = 0.0 if progress.more or progress.record.complete else time.monotonic()
    facts = {"key": namespace, "objects": progress.count, "complete": progress.record.complete}
    log.info("stored anew for a new minor", extra=facts)
    return True
