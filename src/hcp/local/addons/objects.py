"""Short ways to write what only add-ons need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api.manifests import Object


def namespace(name: str, labels: Mapping[str, str] | None = None) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}


def workload(kind: str, name: str, ns: str, labels: Mapping[str, str], pod: Object, **spec: Any) -> Object:
    """A Deployment or DaemonSet whose pods carry `labels`."""
    more: Object = {"replicas": 1} if kind == "Deployment" else {}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": ns, "labels": dict(labels)},
        "spec": {
            **more,
            "selector": {"matchLabels": dict(labels)},
            "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
            **spec,
        },
    }
