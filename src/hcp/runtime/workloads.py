"""Whether a workload does what it should: one answer for Deployments, StatefulSets and DaemonSets.

The condition Available is not enough: with one replica and `maxUnavailable: 1` it is True without a single pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.runtime.conditions import is_true

Workload = Mapping[str, Any]


def wanted(workload: Workload) -> int:
    """How many pods there should be; a DaemonSet knows it only after it has looked at the nodes."""
    if _is_daemon_set(workload):
        return _count(workload, "desiredNumberScheduled")
    replicas = (workload.get("spec") or {}).get("replicas")
    return 1 if replicas is None else int(replicas)


def image(workload: Workload) -> str:
    """What its first container runs, in the template of now."""
    return str(workload["spec"]["template"]["spec"]["containers"][0]["image"])


def available(workload: Workload) -> int:
    return _count(workload, "numberAvailable" if _is_daemon_set(workload) else "availableReplicas")


def observed(workload: Workload) -> bool:
    """Whether its status speaks about its newest spec."""
    return _count(workload, "observedGeneration") >= int(workload["metadata"].get("generation") or 0)


def all_available(workload: Workload | None) -> bool:
    """Whether every wanted pod is available, old template or new. A DaemonSet without nodes is not."""
    if workload is None or not observed(workload) or (_is_daemon_set(workload) and not wanted(workload)):
        return False
    return available(workload) >= wanted(workload)


def serving(deployment: Workload | None) -> bool:
    """Whether enough replicas are there to answer, while others may be changing or missing. One of none never is."""
    if deployment is None:
        return False
    enough = is_true((deployment.get("status") or {}).get("conditions"), "Available")
    return enough and available(deployment) >= 1 and wanted(deployment) >= 1


def rolled_out(workload: Workload | None) -> bool:
    """Whether all pods are of the newest template and available, and none of an older one is left."""
    if workload is None or not all_available(workload):
        return False
    number = wanted(workload)
    if _is_daemon_set(workload):
        return _count(workload, "updatedNumberScheduled") >= number
    return _count(workload, "updatedReplicas") == number == _count(workload, "replicas")


def members(etcd: Workload | None) -> tuple[int, int]:
    """How many members of an etcd are ready, and how many there should be."""
    found = etcd or {}
    ready = int((found.get("status") or {}).get("readyReplicas") or 0)
    return ready, int((found.get("spec") or {}).get("replicas") or 1)


def lacking(etcd: Workload | None) -> int:
    """How many members of an etcd are not ready; one that sleeps lacks none."""
    return max(0, wanted(etcd) - members(etcd)[0]) if etcd is not None else 0


def quorum(etcd: Workload | None, voters: int = 0) -> bool:
    """Whether enough members are ready to decide anything; `voters`: how many decide, if not all of them."""
    ready, number = members(etcd)
    return etcd is not None and ready >= (voters or number) // 2 + 1


def _is_daemon_set(workload: Workload) -> bool:
    return "desiredNumberScheduled" in (workload.get("status") or {}) or workload.get("kind") == "DaemonSet"


def _count(workload: Workload, name: str) -> int:
    return int((workload.get("status") or {}).get(name) or 0)
