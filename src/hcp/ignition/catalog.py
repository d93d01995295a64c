"""What the server knows at this moment: token → document. Pure memory, fed by a watch."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping
from typing import Any

from hcp.ignition.store import Stored, stored


def fingerprint(token: str) -> str:
    """The hash under which a token is known; looking it up tells nothing about other tokens by its timing."""
    return hashlib.sha256(token.encode()).hexdigest()


class Catalog:
    """All documents, found by the hash of a current or previous token."""

    def __init__(self) -> None:
        self._by_name: dict[str, Stored] = {}
        self._by_token: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def put(self, secret: Mapping[str, Any]) -> Stored:
        """Take in a new or changed Secret."""
        entry = stored(secret)
        self.drop(entry.name)
        self._by_name[entry.name] = entry
        for token in (entry.token, entry.old_token):
            if token:
                self._by_token[fingerprint(token)] = entry.name
        return entry

    def drop(self, name: str) -> None:
        """Forget a Secret and its tokens."""
        self._by_name.pop(name, None)
        self._by_token = {token: owner for token, owner in self._by_token.items() if owner != name}

    def find(self, token: str, now: dt.datetime) -> Stored | None:
        """The document a token opens; None when it is unknown or its time is over."""
        entry = self._by_name.get(self._by_token.get(fingerprint(token), ""))
        return None if entry is None or entry.expired(now) else entry
