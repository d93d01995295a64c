"""Changing the key that encrypts what etcd stores, without a moment in which something cannot be read. Pure.

An API server reads with every key it has and writes with the first. So a new key is first given to all API servers for
reading, then used for writing, then everything is written once more, and only then the old key goes. The keys in use
tell how far it is: nothing has to be remembered besides.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.controlplane.apiserver_config import encryption_secret
from hcp.controlplane.meta import secret_data
from hcp.controlplane.params import Manifest, Params

READ, WRITE, REWRITE, DONE = "ReadOnlyDeploy", "WritePromote", "Migrating", "Completed"
GENERATION = f"{names.GROUP}/encryption-before-generation"
"""On the Secret: generation of the kube-apiserver Deployment when its keys were last changed."""
_FILE = "config.yaml"


@dataclass(frozen=True)
class Step:
    """The keys from now on, the first of which writes, and what is being waited for."""

    keys: tuple[bytes, ...]
    state: str


def next_step(
    live: Iterable[bytes], active: bytes, others: Iterable[bytes], *, rolled_out: bool, rewritten: bool
) -> Step:
    """`others` are keys the user wants to be read with in any case; `rewritten`: all is stored under the active key."""
    have, extra = list(live), [key for key in dict.fromkeys(others) if key != active]
    if not have:
        return Step((active, *extra), DONE)
    if have[0] == active:
        settled = (active, *extra)
        if set(have) <= set(settled):
            return Step(settled, DONE)
        if not rolled_out:
            return Step(tuple(have), WRITE)
        return Step(settled, DONE) if rewritten else Step(tuple(have), REWRITE)
    if active not in have:
        return Step((have[0], active, *have[1:]), READ)
    if not rolled_out:
        return Step(tuple(have), READ)
    return Step((active, *(key for key in have if key != active)), WRITE)


def fingerprint(key: bytes) -> str:
    """A name for a key that tells nothing about it."""
    return hashlib.sha256(b"hcp encryption key\0" + key).hexdigest()[:16]


def keys_of(live: Mapping[str, Any] | None) -> list[bytes]:
    """The keys in use, the writing one first; none when there is no configuration yet."""
    text = secret_data(live).get(_FILE) if live else None
    if not text:
        return []
    providers = json.loads(text)["resources"][0]["providers"]
    return [base64.b64decode(key["secret"]) for item in providers for key in item.get("aescbc", {}).get("keys", ())]


def changed_at(live: Mapping[str, Any] | None) -> int:
    """Generation of the Deployment when the keys were last changed; -1: they never were."""
    text = str((at(live, "metadata.annotations") or {}).get(GENERATION, ""))
    return int(text) if text.isdigit() else -1


def manifest(p: Params, keys: Iterable[bytes], generation: int) -> Manifest:
    found = encryption_secret(p, list(keys))
    if generation >= 0:
        found["metadata"].setdefault("annotations", {})[GENERATION] = str(generation)
    return found
