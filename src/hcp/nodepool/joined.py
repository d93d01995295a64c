"""Nodes of a pool whose machines are the user's own: what they say of themselves, and what that means. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hcp.api import conditions as c
from hcp.api.names import LABEL_NODEPOOL, LABEL_RELEASE_VERSION
from hcp.api.paths import labels_of
from hcp.nodepool.aggregate import machines_summary
from hcp.runtime.conditions import Verdict, condition_of

Object = dict[str, Any]
_WORD, _TEXT = 64, 300
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def joining_labels(pool: str, version: str) -> dict[str, str]:
    """The labels a machine registers with: its pool, and the release it was made with."""
    told = version.replace("+", "-")
    return {LABEL_NODEPOOL: pool, **({LABEL_RELEASE_VERSION: told} if _LABEL_VALUE.fullmatch(told) else {})}


@dataclass(frozen=True)
class Joined:
    """The nodes of one pool, judged."""

    nodes: Sequence[Object]
    ready: int
    healthy: Verdict
    pool_ready: Verdict


def judge(pool: str, expected: int, nodes: Sequence[Object]) -> Joined:
    """What there is to say about the nodes of ``pool`` among all nodes; ``expected`` is what its owner counts on."""
    mine = [node for node in nodes if labels_of(node).get(LABEL_NODEPOOL) == pool]
    ready = sum((condition_of(node, "Ready") or {}).get("status") == "True" for node in mine)
    return Joined(mine, ready, _healthy(mine), _ready(expected, len(mine), ready))


def _healthy(mine: Sequence[Object]) -> Verdict:
    if not mine:
        return False, c.NOT_FOUND, "No machine has joined yet"
    found = machines_summary([_readable(node) for node in mine], "Ready", "healthy", "NodeNotReported")
    return found.ok, found.reason, c.AS_EXPECTED if found.ok else found.message


def _readable(node: Object) -> Object:
    """A node as its pool may quote it: words of a tenant must not keep us from writing a condition."""
    ready = condition_of(node, "Ready")
    if ready is None:
        return {"metadata": node["metadata"]}
    reason = re.sub(r"[^A-Za-z0-9]", "", str(ready.get("reason") or ""))[:_WORD].lstrip("0123456789")
    text = "".join(char for char in str(ready.get("message") or "")[:_TEXT] if char.isprintable())
    told = {"type": "Ready", "status": ready.get("status"), "reason": reason or "NotReady", "message": text}
    return {"metadata": node["metadata"], "status": {"conditions": [told]}}


def _ready(expected: int, joined: int, ready: int) -> Verdict:
    if ready < expected:
        said = f"{ready} of {expected} nodes have joined and are ready; start machines of your own to join"
        return False, c.WAITING_FOR_NODES, said
    if ready < joined:
        return False, c.NODES_NOT_READY, f"{joined - ready} of {joined} nodes that joined are not ready"
    said = f"{ready} nodes have joined and are ready" if joined else "Machines of your own can join"
    return True, c.AS_EXPECTED, said
