"""What is kept in memory of objects inside hosted clusters.

Tenants make them, as many and as large as their etcd holds, and one process follows all hosted clusters: of every one
only what somebody here reads is kept, and of every kind only so many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Object = dict[str, Any]
MOST_SERVICES = 1_000
MOST_SLICES = 5_000
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


def only(found: Mapping[str, Any] | None, keys: Iterable[str]) -> Object:
    return {key: found[key] for key in keys if found and key in found}


def reduced(obj: Object, annotations: Object, **parts: Object) -> Object:
    metadata = only(obj.get("metadata"), _METADATA)
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind"), "metadata": metadata, **parts}


def service(obj: Object) -> Object:
    """A Service of type LoadBalancer. Its annotations are its tenant's, and steer nothing here."""
    told = only(obj.get("status"), ("loadBalancer", "conditions"))
    return reduced(obj, {}, spec=dict(obj.get("spec") or {}), status=told)


def endpoint_slice(obj: Object) -> Object:
    """Which nodes run a ready endpoint of which Service."""
    endpoints = [only(one, ("nodeName", "conditions")) for one in obj.get("endpoints") or []]
    return {**reduced(obj, {}), "endpoints": endpoints}
