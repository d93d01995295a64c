"""Which key encrypts what etcd stores, and how its changes went, as the status tells it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api.paths import at
from hcp.controlplane.encryption import DONE

Object = dict[str, Any]
INTERRUPTED = "Interrupted"
PROVIDER = "AESCBC"
MAX_HISTORY = 5


def advance(before: Mapping[str, Any] | None, *, secret: str, fingerprint: str, state: str, now: str) -> Object:
    """The block after this pass: equal facts and an equal block before give an equal block."""
    known = before or {}
    key: Object = {"provider": PROVIDER, "aescbc": {"secret": {"name": secret}, "dataHash": fingerprint}}
    history = [dict(entry) for entry in known.get("history") or []]
    active = known.get("activeKey") or (key if state == DONE else None)
    if history and history[0]["state"] not in (DONE, INTERRUPTED):
        same = history[0]["to"]["fingerprint"] == fingerprint
        history[0]["state"] = state if same else INTERRUPTED
        if history[0]["state"] in (DONE, INTERRUPTED):
            history[0]["completionTime"] = now
    if state != DONE and (not history or history[0]["state"] in (DONE, INTERRUPTED)):
        started = {"from": _mark(_hash(active)), "to": _mark(fingerprint), "state": state, "startedTime": now}
        history.insert(0, started)
    found: Object = {"history": history[:MAX_HISTORY]} if history else {}
    if state == DONE:
        return {**found, "activeKey": key}
    return {**found, "targetKey": key, **({"activeKey": active} if active else {})}


def _mark(fingerprint: str) -> Object:
    return {"provider": PROVIDER, "fingerprint": fingerprint}


def _hash(key: Mapping[str, Any] | None) -> str:
    """A change that was begun before anybody wrote this status has no known key to start from."""
    return str(at(key, "aescbc.dataHash") or "unknown")
