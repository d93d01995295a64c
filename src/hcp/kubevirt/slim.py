"""What is kept in memory of objects inside hosted clusters.

Tenants make them, as many and as large as their etcd holds, and one process follows all hosted clusters: of every one
only what somebody here reads is kept, and of every kind only so many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hcp.kubevirt.nodes import ANNOTATION_SYNCED

Object = dict[str, Any]
MOST_NODES = 2_000
MOST_REQUESTS = 1_000
MOST_SERVICES = 1_000
MOST_SLICES = 5_000
# An annotation that is longer than this is none that we read.
MAX_ANNOTATION = 4_096
_METADATA = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "finalizers",
)


def _only(found: Mapping[str, Any] | None, keys: Iterable[str]) -> Object:
    return {key: found[key] for key in keys if found and key in found}


def _with(obj: Object, annotations: Object, **parts: Object) -> Object:
    metadata = _only(obj.get("metadata"), _METADATA)
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind"), "metadata": metadata, **parts}


def _annotations(obj: Object) -> dict[str, str]:
    return dict((obj.get("metadata") or {}).get("annotations") or {})


def node(obj: Object) -> Object:
    """Nodes carry long lists of images and volumes."""
    known = _annotations(obj).get(ANNOTATION_SYNCED)
    return _with(
        obj,
        {} if known is None else {ANNOTATION_SYNCED: known},
        spec=_only(obj.get("spec"), ("taints", "providerID", "unschedulable")),
        status={
            **_only(obj.get("status"), ("conditions", "addresses")),
            "nodeInfo": _only((obj.get("status") or {}).get("nodeInfo"), ("kubeletVersion",)),
        },
    )


def request(obj: Object) -> Object:
    """A request that has its answer is kept by name only."""
    status = _only(obj.get("status"), ("conditions",))
    spec = _only(obj.get("spec"), ("signerName",)) if status.get("conditions") else dict(obj.get("spec") or {})
    return _with(obj, {}, spec=spec, status=status)


def service(obj: Object) -> Object:
    """A Service of type LoadBalancer, with the annotations that load balancers read."""
    kept = {key: value for key, value in _annotations(obj).items() if len(value) <= MAX_ANNOTATION}
    return _with(obj, kept, spec=dict(obj.get("spec") or {}), status=_only(obj.get("status"), ("loadBalancer",)))


def endpoint_slice(obj: Object) -> Object:
    """Which nodes run a ready endpoint of which Service."""
    endpoints = [_only(one, ("nodeName", "conditions")) for one in obj.get("endpoints") or []]
    return {**_with(obj, {}), "endpoints": endpoints}
