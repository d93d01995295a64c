"""ClusterOperators: one for each part of a hosted cluster that exists. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.paths import at
from hcp.guest.objects import Manifest, obj
from hcp.runtime.conditions import Verdict, set_condition

API_VERSION = "config.openshift.io/v1"
# Those that a cluster may have and lose again.
OPTIONAL = (
    "authentication",
    "csi-snapshot-controller",
    "ingress",
    "monitoring",
    "operator-lifecycle-manager",
    "operator-lifecycle-manager-catalog",
    "operator-lifecycle-manager-packageserver",
    "storage",
)


@dataclass(frozen=True)
class Operator:
    """How one part is."""

    name: str
    available: Verdict
    progressing: Verdict
    degraded: Verdict
    upgradeable: Verdict
    # The release it runs from; empty until it once ran.
    version: str = ""
    # What it consists of: group, resource, namespace, name.
    related: tuple[tuple[str, str, str, str], ...] = ()

    @property
    def works(self) -> bool:
        return self.available[0] is True


def manifest(name: str) -> Manifest:
    return obj(API_VERSION, "ClusterOperator", name, {"spec": {}})


def status(operator: Operator, live: Mapping[str, Any] | None, now: str) -> Manifest:
    """What is applied to the status; `live` is for the times at which conditions changed."""
    conditions: Any = at(live, "status.conditions")
    told = {
        "Available": operator.available,
        "Progressing": operator.progressing,
        "Degraded": operator.degraded,
        "Upgradeable": operator.upgradeable,
    }
    for kind, verdict in told.items():
        conditions = set_condition(conditions, kind, *verdict, at=now)
    body: Manifest = {"conditions": [one for one in conditions if one["type"] in told]}
    if operator.version:
        body["versions"] = [{"name": "operator", "version": operator.version}]
    body["relatedObjects"] = [_related(*one) for one in operator.related]
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterOperator",
        "metadata": {"name": operator.name},
        "status": body,
    }


def _related(group: str, resource: str, namespace: str, name: str) -> Manifest:
    made = {"group": group, "resource": resource, "name": name}
    return {**made, "namespace": namespace} if namespace else made
