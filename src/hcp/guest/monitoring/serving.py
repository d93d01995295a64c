"""Whether the API of metrics is announced, and served. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api.paths import conditions_of, labels_of
from hcp.guest.monitoring import metrics_server
from hcp.guest.objects import LABELS
from hcp.runtime.conditions import get_condition
from hcp.runtime.workloads import available

SERVED, FOREIGN = "True", "somebody else serves it"


def told(found: Iterable[Mapping[str, Any]]) -> str:
    """In words; empty while it is not announced."""
    live = next(iter(found), None)
    if live is None:
        return ""
    if foreign([live]):
        return FOREIGN
    condition = get_condition(conditions_of(live), "Available") or {}
    if condition.get("status") == "True":
        return SERVED
    return str(condition.get("message") or "kube-apiserver has not asked it yet")


def foreign(found: Iterable[Mapping[str, Any]]) -> bool:
    """Somebody installed a server of metrics of their own: its API is left to it."""
    return any(not labels_of(one).items() >= LABELS.items() for one in found)


def announce(
    deployments: Iterable[Mapping[str, Any]], apis: Iterable[Mapping[str, Any]], nodes: int, before: bool
) -> bool:
    """Once somebody can serve it, as long as there are nodes on which that can be."""
    if not nodes or foreign(apis):
        return False
    return before or any(one["metadata"]["name"] == metrics_server.NAME and available(one) for one in deployments)
