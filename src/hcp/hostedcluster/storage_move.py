"""Whether a new Kubernetes minor asks for everything to be stored anew. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import conditions as c
from hcp.api.paths import at
from hcp.api.versions import kubernetes_minor, parse_version
from hcp.errors import HcpError
from hcp.guest.migration import Told
from hcp.guest.migration_record import Move
from hcp.hostedcluster.version import COMPLETED
from hcp.runtime.conditions import Verdict


def wanted(status: Mapping[str, Any] | None) -> Move | None:
    """The move to the minor that the control plane has reached; None where it never had another one.

    The control plane counts, not nodes: only API servers store. Once all of them are of the new minor none writes as
    the one before did. A minor that was tried and left counts too, since it may have stored some objects its way.
    """
    history = at(status, "controlPlaneVersion.history") or []
    if not history or history[0].get("state") != COMPLETED:
        return None
    minor = _minor(history[0])
    if not minor:
        return None
    since = history[0]
    for entry in history[1:]:
        other = _minor(entry)
        if other == minor:
            since = entry
        elif other:
            before = other if entry.get("state") == COMPLETED else ""
            return Move(minor, f"{minor}@{since.get('startedTime')}", before)
    return None


def verdict(told: Told) -> Verdict:
    """What the condition says."""
    if told.complete:
        return True, c.AS_EXPECTED, f"Everything that the cluster stores is stored as Kubernetes {told.minor} does"
    if told.refused:
        message = f"Not everything could be stored as Kubernetes {told.minor} does, it is tried again every hour"
        return False, c.OBJECTS_REFUSED, f"{message}: {told.refused}"
    return False, c.MIGRATING, f"What the cluster stores is being stored anew, as Kubernetes {told.minor} does"


def _minor(entry: Mapping[str, Any]) -> str:
    """Empty for versions of nobody's scheme."""
    try:
        return f"1.{kubernetes_minor(parse_version(str(entry.get('version') or '')))}"
    except HcpError:
        return ""
