"""The parts every object of a control plane shares: labels, owner, canonical form, hashes."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api import names
from hcp.controlplane.params import Manifest, Params

LABEL_COMPONENT = names.LABEL_CONTROL_PLANE_COMPONENT
MANAGER = "control-plane-operator"
CONFIG_HASH = f"component.{names.GROUP}/config-hash"


def obj(
    p: Params,
    api_version: str,
    kind: str,
    name: str,
    body: Mapping[str, Any] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Manifest:
    """An object in the hosted namespace, marked as ours and owned by the HostedControlPlane once that is known."""
    metadata: Manifest = {
        "name": name,
        "namespace": p.namespace,
        "labels": {names.LABEL_CONTROL_PLANE_NAMESPACE: p.namespace, **(labels or {})},
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    if p.owner:
        metadata["ownerReferences"] = [dict(p.owner)]
    found: Manifest = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **(body or {})}
    if p.asleep and kind in ("Deployment", "StatefulSet"):
        found["spec"] = {**found["spec"], "replicas": 0}
    return found


def config_map(p: Params, name: str, data: Mapping[str, str]) -> Manifest:
    return obj(p, "v1", "ConfigMap", name, {"data": dict(data)})


def secret(p: Params, name: str, data: Mapping[str, bytes], type_: str = "Opaque", **meta: Any) -> Manifest:
    """A Secret; values are base64 so that what is read back compares equal."""
    body = {"type": type_, "data": {k: base64.b64encode(v).decode() for k, v in sorted(data.items())}}
    return obj(p, "v1", "Secret", name, body, **meta)


def secret_data(manifest: Mapping[str, Any] | None) -> dict[str, bytes]:
    """The decoded values of a Secret, empty for None."""
    return {k: base64.b64decode(v) for k, v in ((manifest or {}).get("data") or {}).items()}


def component_labels(p: Params, component: str) -> dict[str, str]:
    """What selectors of this component use; never changes."""
    return {
        "app": component,
        LABEL_COMPONENT: component,
        names.LABEL_CONTROL_PLANE_NAMESPACE: p.namespace,
    }


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(*values: Any) -> str:
    """A short stable hash of any JSON value, the same in every process."""
    return hashlib.sha256("\n".join(canonical(v) for v in values).encode()).hexdigest()[:16]


def config_hash(manifests: Iterable[Mapping[str, Any]]) -> str:
    """The hash of what a pod mounts, so that a change of content rolls the pod and nothing else does."""
    parts = {f"{m['kind']}/{m['metadata']['name']}": m.get("data") or {} for m in manifests}
    return digest(parts)
