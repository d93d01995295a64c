"""The size of a pool that follows the load: its bounds, who decides, and why it grows no further. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import conditions as c
from hcp.api import names
from hcp.api.paths import annotations_of, at
from hcp.nodepool.aggregate import machines_summary
from hcp.nodepool.observed import Machines
from hcp.runtime.conditions import Verdict

# Who sets the size of such a pool for us: once it is set, it is the autoscaler's, and no pass of ours writes it again.
MANAGER = "hcp-pool-size"
_MESSAGE = 2000


def bounds(spec: Mapping[str, Any]) -> tuple[int, int] | None:
    """Fewest and most machines; None for a pool with a size of its own."""
    scaling = spec.get("autoScaling")
    return (int(scaling.get("min") or 0), int(scaling.get("max") or 1)) if scaling else None


def effective_replicas(spec: Mapping[str, Any], current: int | None) -> int:
    """How many machines the pool shall have; between the bounds an autoscaler's choice is left alone."""
    limits = bounds(spec)
    if limits is None:
        return int(spec.get("replicas") or 0)
    low, high = limits
    return min(max(low if current is None else current, low), high)


def owns_size(live: Mapping[str, Any] | None, manager: str) -> bool:
    """Whether this manager applied the size last: taking it out of what it applies would take it off the object."""
    entries = at(live, "metadata.managedFields") or ()
    return any(
        entry.get("manager") == manager and entry.get("operation") == "Apply" and _mentions_size(entry.get("fieldsV1"))
        for entry in entries
    )


def _mentions_size(fields: Any) -> bool:
    if isinstance(fields, str):  # as a cache keeps it
        return '"f:replicas"' in fields
    return "f:replicas" in (at(fields, "f:spec") or {})


def verdict(spec: Mapping[str, Any], cluster: Mapping[str, Any], components: Mapping[str, str]) -> Verdict:
    """Whether the load decides the size; ``components`` are those of the control plane's release."""
    limits = bounds(spec)
    if limits is None:
        return False, c.AS_EXPECTED, ""
    low, high = limits
    instead = f"the pool starts with its minimum of {low} and stays as it is, unless somebody moves it up to {high}"
    told = annotations_of(cluster)
    if names.ANNOTATION_DISABLE_AUTOSCALER in told:
        return False, c.FIELDS_NOT_HONOURED, f"Annotation {names.ANNOTATION_DISABLE_AUTOSCALER} is set: {instead}"
    if names.AUTOSCALER not in components and names.ANNOTATION_AUTOSCALER_IMAGE not in told:
        lacks = f"The release of the control plane has no {names.AUTOSCALER}: {instead}"
        return False, c.FIELDS_NOT_HONOURED, f"{lacks}. Use a release that has it, such as one for autoscaling"
    return True, c.AS_EXPECTED, f"Maximum nodes: {high}, Minimum nodes: {low}"


def held_back(said: Verdict, seen: Machines) -> Verdict:
    """The same, with what keeps the pool from growing."""
    if said[0] is not True or seen.deployment is None:
        return said
    reasons, total, most = [], seen.in_cluster, seen.most_in_cluster
    size, limit = int(at(seen.deployment, "spec.replicas", 0)), _most(seen.deployment)
    if limit is not None and size >= limit:
        reasons.append(f"the pool has {size}, its maximum: it grows no further")
    if most and total >= most:
        reasons.append(f"the cluster has {total} nodes and spec.autoscaling.maxNodesTotal is {most}")
    coming = [machine for machine in seen.machines if not at(machine, "status.nodeRef") and not _going(machine)]
    if coming:
        why = machines_summary(coming, "Ready", "nodes yet", "WaitingForInfrastructure").message
        reasons.append(" ".join(why.split()))
    return (True, said[1], "; ".join([said[2], *reasons])[:_MESSAGE]) if reasons else said


def _going(machine: Mapping[str, Any]) -> bool:
    return bool(at(machine, "metadata.deletionTimestamp"))


def _most(deployment: Mapping[str, Any]) -> int | None:
    text = annotations_of(deployment).get(names.CAPI_SIZE_MAX, "")
    return int(text) if text.isdecimal() and int(text) else None
