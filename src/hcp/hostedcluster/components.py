"""One ControlPlaneComponent for each part of a control plane, for tools that look there. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from hcp.api import conditions as c
from hcp.api import names
from hcp.api.paths import at
from hcp.controlplane.params import Params
from hcp.hostedcluster.observed import Observed
from hcp.runtime import workloads
from hcp.runtime.conditions import set_condition

Object = dict[str, Any]
# Parts that start well are complete by then; told before, each would be written twice.
PATIENCE = 30.0


def workloads_of(seen: Observed) -> dict[str, Mapping[str, Any]]:
    """The parts that exist, by name."""
    found = dict(seen.deployments)
    if seen.etcd is not None:
        found["etcd"] = seen.etcd
    return found


def due(workload: Mapping[str, Any], before: Mapping[str, Any] | None, now: dt.datetime) -> float:
    """Seconds until a part is told of: at once when it is known or complete, and when it takes long."""
    made = str(workload["metadata"].get("creationTimestamp") or "")
    if before is not None or not made or workloads.rolled_out(workload) or not workloads.wanted(workload):
        return 0.0
    return max(0.0, PATIENCE - (now - dt.datetime.fromisoformat(made)).total_seconds())


def component(p: Params, name: str, workload: Mapping[str, Any], before: Mapping[str, Any] | None, now: str) -> Object:
    """The object for one part; equal facts and an equal one before give an equal one."""
    have, wanted = workloads.available(workload), workloads.wanted(workload)
    answers = have >= wanted // 2 + 1 if name == "etcd" else workloads.serving(workload)
    complete = workloads.rolled_out(workload)
    said = f"{have} of {wanted} replicas are available"
    conditions = at(before, "status.conditions")
    reason = c.AS_EXPECTED if answers else c.WAITING_FOR_AVAILABLE
    if not wanted:
        answers, complete, reason, said = False, False, c.HIBERNATING, "The cluster sleeps"
    conditions = set_condition(conditions, "Available", answers, reason, said, at=now)
    reason, said = (c.AS_EXPECTED, "Every replica is new") if complete else ("WaitingForRolloutComplete", said)
    conditions = set_condition(conditions, "RolloutComplete", complete, reason, said, at=now)
    version = p.version if complete else str(at(before, "status.version") or "")
    kind = "StatefulSet" if name == "etcd" else "Deployment"
    status: Object = {"conditions": conditions, "resources": [{"group": "apps", "kind": kind, "name": name}]}
    if version:
        status["version"] = version
    return {
        "apiVersion": names.API_VERSION,
        "kind": "ControlPlaneComponent",
        "metadata": {
            "name": name,
            "namespace": p.namespace,
            "labels": {names.LABEL_CONTROL_PLANE_NAMESPACE: p.namespace},
            "ownerReferences": [dict(p.owner)] if p.owner else [],
        },
        "spec": {},
        "status": status,
    }
