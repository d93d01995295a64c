"""The life of a bootstrap token: when it is renewed, how long the old one stays good, when it ends."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass

LIFETIME = dt.timedelta(hours=11)
ROTATE_AFTER = LIFETIME / 2
# A machine made just before a roll-out may still be booting with the old pointer.
GRACE_AFTER_ROLLOUT = dt.timedelta(hours=2)


@dataclass(frozen=True)
class Tokens:
    """The current token, the one before it, and when the current one was made."""

    current: str
    previous: str
    made: dt.datetime


def new_token() -> str:
    """A random token nobody can guess."""
    return str(uuid.uuid4())


def fresh(now: dt.datetime) -> Tokens:
    """The first token of a document."""
    return Tokens(new_token(), "", now)


def rotated(tokens: Tokens, now: dt.datetime) -> Tokens:
    """The same tokens, or a new pair once half of the lifetime has passed."""
    if now - tokens.made < ROTATE_AFTER:
        return tokens
    return Tokens(new_token(), tokens.current, now)


def until_rotation(tokens: Tokens, now: dt.datetime) -> float:
    """Seconds until `rotated` would change something."""
    return max(0.0, (tokens.made + ROTATE_AFTER - now).total_seconds())


def stamp(moment: dt.datetime) -> str:
    """A moment as annotations carry it (RFC 3339, whole seconds)."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_stamp(text: str) -> dt.datetime | None:
    """The moment an annotation names; None when it names none."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
