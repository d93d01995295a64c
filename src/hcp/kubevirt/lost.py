"""Whether the machine of a node is proven gone, and what is said on the Node about it. Pure.

A node that is merely not heard may still write to its volumes. One whose machine has ended cannot: then Kubernetes is
told by its own taint, and gives pods and volumes to other nodes at once instead of waiting for this one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api.names import MARK_OUT_OF_SERVICE
from hcp.api.paths import annotations_of, at
from hcp.kubevirt.launchers import ENDED
from hcp.runtime.conditions import condition_of, is_true

Object = dict[str, Any]
TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
REASON = "MachineGone"
# Where caches keep what `heard` found: bookkeeping itself is not kept.
HEARD = "heard"
_REPORTS = ("kubelet", "status")
# So long a new instance may take until its node can mount volumes; then the node is of use without them.
PATIENCE = dt.timedelta(minutes=5)


def heard(node: Mapping[str, Any]) -> str:
    """When the kubelet reported last, of a node or a pod, by the clock of its API server: the machine's may be wrong.

    An API server that keeps no such notes leaves only what the kubelet says.
    """
    entries = node["metadata"].get("managedFields") or ()
    times = [str(one["time"]) for one in entries if (one.get("manager"), one.get("subresource")) == _REPORTS]
    said = (condition_of(node, "Ready") or {}).get("lastHeartbeatTime")
    return max(times, default=str(said or ""))


def gone(node: Mapping[str, Any], instance: Mapping[str, Any] | None, pods: Iterable[Mapping[str, Any]] | None) -> bool:
    """Nothing runs any more of what the node was when it last reported. `pods` is None where nobody may look."""
    last = _heard(node)
    if pods is None or last is None:
        return False
    uid = at(instance, "metadata.uid")
    if any(_runs(pod, node["metadata"]["name"], except_for=uid) for pod in pods):
        return False
    if instance is None or at(instance, "status.phase") in ENDED:
        return True
    return _time(instance["metadata"].get("creationTimestamp")) > last


def back(node: Mapping[str, Any], instance: Mapping[str, Any] | None) -> bool:
    """The node is one again: it reports from the instance that runs now."""
    last = _heard(node)
    if instance is None or last is None or at(instance, "status.phase") != "Running":
        return False
    since = _time(instance["metadata"].get("creationTimestamp"))
    return last >= since and is_true(at(node, "status.conditions"), "Ready")


def mounts(pod: Mapping[str, Any], instance: Mapping[str, Any]) -> bool:
    """Whether this pod of the driver serves in this instance, not merely did so in the former one.

    A kubelet that is asked to mount before it knows the driver asks again later and later, up to two minutes.
    """
    last, since = heard(pod), _time(instance["metadata"].get("creationTimestamp"))
    return bool(last) and _time(last) >= since and is_true(at(pod, "status.conditions"), "Ready")


def patient(instance: Mapping[str, Any], now: dt.datetime) -> bool:
    """Whether its driver is still waited for."""
    return now < _time(instance["metadata"].get("creationTimestamp")) + PATIENCE


def marked(node: Mapping[str, Any]) -> bool:
    """Whether we have said so, and not a person."""
    return MARK_OUT_OF_SERVICE in annotations_of(node)


def told(node: Mapping[str, Any]) -> bool:
    """Whether everything is said that has to be."""
    tainted = any(one.get("key") == TAINT["key"] for one in at(node, "spec.taints") or ())
    return tainted and not is_true(at(node, "status.conditions"), "Ready")


def taint(node: Mapping[str, Any], now: dt.datetime) -> Object | None:
    """The patch that says it; the version is named, since taints are one list. None where it is said already."""
    present = at(node, "spec.taints") or []
    if any(one.get("key") == TAINT["key"] for one in present):
        return None
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": {MARK_OUT_OF_SERVICE: stamp}}
    return {"metadata": metadata, "spec": {"taints": [*present, {**TAINT, "timeAdded": stamp}]}}


def untaint(node: Mapping[str, Any]) -> Object:
    kept = [one for one in at(node, "spec.taints") or () if one.get("key") != TAINT["key"]]
    metadata = {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": {MARK_OUT_OF_SERVICE: None}}
    return {"metadata": metadata, "spec": {"taints": kept or None}}


def unready(node: Mapping[str, Any], now: dt.datetime) -> Object | None:
    """The patch of its status: nobody waits for the next report of a machine that is gone."""
    if not is_true(at(node, "status.conditions"), "Ready"):
        return None
    said = {
        "status": "Unknown",
        "reason": REASON,
        "message": "The virtual machine of this node has ended",
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    conditions = [{**one, **said} if one.get("type") == "Ready" else one for one in at(node, "status.conditions")]
    return {
        "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
        "status": {"conditions": conditions},
    }


def keeps_a_volume(pod: Mapping[str, Any]) -> bool:
    """Whether others wait for what this pod of a lost node has. Kubernetes removes such pods too, but looks for them
    every 20 seconds only; by then the next instance of the machine has begun to take the volume back."""
    volumes = at(pod, "spec.volumes") or ()
    return any("persistentVolumeClaim" in one or "ephemeral" in one for one in volumes) and not _stays(pod)


def _stays(pod: Mapping[str, Any]) -> bool:
    """Whether it tolerates the taint, for whatever reason."""
    for one in at(pod, "spec.tolerations") or ():
        meant = one.get("key") in (None, "", TAINT["key"]) and one.get("effect") in (None, "", TAINT["effect"])
        if meant and (one.get("operator") == "Exists" or one.get("value") == TAINT["value"]):
            return True
    return False


def _heard(node: Mapping[str, Any]) -> dt.datetime | None:
    stamp = at(node, f"status.{HEARD}")
    return _time(stamp) if stamp else None


def _runs(pod: Mapping[str, Any], machine: str, *, except_for: str | None) -> bool:
    """Whether it is a living pod of this machine, of another instance than the given one."""
    if at(pod, "status.phase") in ENDED:
        return False
    owners = pod["metadata"].get("ownerReferences") or ()
    ours = [one for one in owners if one.get("kind") == "VirtualMachineInstance" and one.get("name") == machine]
    return any(one.get("uid") != except_for for one in ours)


def _time(stamp: Any) -> dt.datetime:
    return dt.datetime.fromisoformat(str(stamp))
