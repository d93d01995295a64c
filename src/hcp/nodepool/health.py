"""Repair of a pool's nodes: the health check that says which are sick, and what is done about them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hcp.api.names import (
    ANNOTATION_MHC_MAX_UNHEALTHY,
    ANNOTATION_MHC_STARTUP_TIMEOUT,
    ANNOTATION_MHC_TIMEOUT,
    ANNOTATION_NODEPOOL,
    ANNOTATION_REPAIR_RESTART_TIMEOUT,
    ANNOTATION_REPAIR_RESTARTS,
    API_VERSION,
    LABEL_CAPI_CLUSTER_NAME,
)
from hcp.api.noderepair import MOST_RESTARTS
from hcp.nodepool.machines import API, resources_name
from hcp.runtime import durations

_LONGEST = 365 * 86400
_PERCENT_OR_NUMBER = re.compile(r"[0-9]{1,3}%|[0-9]{1,6}")


def machine_health_check(
    namespace: str, node_pool: Mapping[str, Any], infra_id: str, cluster_annotations: Mapping[str, str]
) -> dict[str, Any]:
    """The health check of a pool with autoRepair; annotations of the pool win over those of the cluster."""
    metadata, spec = node_pool["metadata"], node_pool.get("spec") or {}
    asked = {**cluster_annotations, **(metadata.get("annotations") or {})}
    timeout = _duration(asked.get(ANNOTATION_MHC_TIMEOUT), "8m0s")
    startup = _duration(asked.get(ANNOTATION_MHC_STARTUP_TIMEOUT), "20m0s")
    unhealthy = str(asked.get(ANNOTATION_MHC_MAX_UNHEALTHY))
    unhealthy = unhealthy if _PERCENT_OR_NUMBER.fullmatch(unhealthy) else "2"
    name = resources_name(infra_id, spec.get("clusterName", ""), metadata["name"])
    return {
        "apiVersion": API,
        "kind": "MachineHealthCheck",
        "metadata": {
            "name": metadata["name"],
            "namespace": namespace,
            "labels": {LABEL_CAPI_CLUSTER_NAME: infra_id},
            "annotations": {ANNOTATION_NODEPOOL: f"{metadata['namespace']}/{metadata['name']}"},
        },
        "spec": {
            "clusterName": infra_id,
            "selector": {"matchLabels": {name: name}},
            "unhealthyConditions": [
                {"type": "Ready", "status": "False", "timeout": timeout},
                {"type": "Ready", "status": "Unknown", "timeout": timeout},
            ],
            "maxUnhealthy": int(unhealthy) if unhealthy.isdigit() else unhealthy,
            "nodeStartupTimeout": startup,
            # Who is sick, and whether that are too many, is decided there; what is done about it, by our own kind.
            "remediationTemplate": {
                "apiVersion": API_VERSION,
                "kind": "NodeRepairTemplate",
                "namespace": namespace,
                "name": metadata["name"],
            },
        },
    }


def repair_template(
    namespace: str, node_pool: Mapping[str, Any], infra_id: str, cluster_annotations: Mapping[str, str]
) -> dict[str, Any]:
    """How sick nodes of a pool are repaired; read like the settings of the health check."""
    metadata = node_pool["metadata"]
    asked = {**cluster_annotations, **(metadata.get("annotations") or {})}
    restarts = str(asked.get(ANNOTATION_REPAIR_RESTARTS))
    owned = {ANNOTATION_NODEPOOL: f"{metadata['namespace']}/{metadata['name']}"}
    spec = {
        "restarts": int(restarts) if restarts.isdecimal() and int(restarts) <= MOST_RESTARTS else 1,
        "restartTimeout": _duration(asked.get(ANNOTATION_REPAIR_RESTART_TIMEOUT), "10m"),
        "within": "1h",
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeRepairTemplate",
        "metadata": {
            "name": metadata["name"],
            "namespace": namespace,
            "labels": {LABEL_CAPI_CLUSTER_NAME: infra_id},
            "annotations": owned,
        },
        "spec": {"template": {"metadata": {"annotations": dict(owned)}, "spec": spec}},
    }


def _duration(value: str | None, default: str) -> str:
    """The value when it can be read; a bad one is ignored, as it would stop Cluster API's cache for all clusters."""
    seconds = durations.parse(value) if value else None
    return value if value and seconds is not None and seconds <= _LONGEST else default
