"""The MachineDeployment of a pool, and what it is called and selected by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.names import (
    ANNOTATION_NODEPOOL,
    ANNOTATION_RELEASE_VERSION,
    CAPI_SIZE_MAX,
    CAPI_SIZE_MIN,
    LABEL_CAPI_CLUSTER_NAME,
)
from hcp.api.paths import at
from hcp.ignition.hashes import limited_name
from hcp.nodepool import capacity
from hcp.nodepool.scaling import bounds, effective_replicas
from hcp.runtime import workloads

API = "cluster.x-k8s.io/v1beta1"
PAUSED = "cluster.x-k8s.io/paused"


def resources_name(infra_id: str, cluster: str, node_pool: str) -> str:
    """The label key and value that mark everything of one pool."""
    return limited_name(f"{infra_id}-{cluster}", node_pool, 43)


@dataclass(frozen=True)
class DeploymentInput:
    """What a MachineDeployment depends on."""

    namespace: str
    node_pool: Mapping[str, Any]
    infra_id: str
    template: str
    user_data: str
    version: str
    paused: bool
    # Whether the object exists: the size of a pool that follows the load is ours to say only at its beginning.
    exists: bool = False
    # How many machines there are, where they were before it.
    size: int | None = None
    # Machines beyond the size, for others that are about to leave their infra node.
    beyond: int = 0
    # The VM that the template describes, where it is known.
    machine: Mapping[str, Any] | None = None


def selector_labels(infra_id: str, spec: Mapping[str, Any], node_pool: str) -> dict[str, str]:
    """The labels that select a pool's machines."""
    name = resources_name(infra_id, spec.get("clusterName", ""), node_pool)
    return {LABEL_CAPI_CLUSTER_NAME: infra_id, name: name}


def machine_deployment(given: DeploymentInput) -> dict[str, Any]:
    """The MachineDeployment of a pool with upgrade type Replace."""
    metadata, spec = given.node_pool["metadata"], given.node_pool.get("spec") or {}
    name, key = metadata["name"], f"{metadata['namespace']}/{metadata['name']}"
    labels = selector_labels(given.infra_id, spec, name)
    limits = bounds(spec)
    size = effective_replicas(spec, given.size) + (given.beyond if limits is None else 0)
    # Zero and zero: an autoscaler leaves the pool alone, also one that rests.
    low, high = (0, 0) if limits is None or given.paused else limits
    annotations = {
        ANNOTATION_NODEPOOL: key,
        CAPI_SIZE_MIN: str(low),
        CAPI_SIZE_MAX: str(high),
    }
    if limits is not None:
        annotations |= capacity.told(name, spec, given.machine)
    if given.paused:
        annotations[PAUSED] = "true"
    machine: dict[str, Any] = {
        "clusterName": given.infra_id,
        "bootstrap": {"dataSecretName": given.user_data},
        "infrastructureRef": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
            "kind": "KubevirtMachineTemplate",
            "namespace": given.namespace,
            "name": given.template,
        },
        "version": given.version,
    }
    for field in ("nodeDrainTimeout", "nodeVolumeDetachTimeout"):
        if spec.get(field):
            machine[field] = spec[field]
    return {
        "apiVersion": API,
        "kind": "MachineDeployment",
        "metadata": {
            "name": name,
            "namespace": given.namespace,
            "labels": {LABEL_CAPI_CLUSTER_NAME: given.infra_id},
            "annotations": annotations,
        },
        "spec": {
            "clusterName": given.infra_id,
            **({} if limits is not None and given.exists else {"replicas": size}),
            "selector": {"matchLabels": labels},
            "strategy": _strategy(at(spec, "management.replace") or {}),
            "template": {
                "metadata": {
                    "labels": dict(labels),
                    "annotations": {ANNOTATION_NODEPOOL: key, ANNOTATION_RELEASE_VERSION: given.version},
                },
                "spec": machine,
            },
        },
    }


def _strategy(replace: Mapping[str, Any]) -> dict[str, Any]:
    if replace.get("strategy") == "OnDelete":
        return {"type": "OnDelete"}
    rolling = replace.get("rollingUpdate") or {}
    surge, unavailable = rolling.get("maxSurge"), rolling.get("maxUnavailable")
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {
            "maxSurge": 1 if surge is None else surge,
            "maxUnavailable": 0 if unavailable is None else unavailable,
        },
    }


def deployment_complete(deployment: Mapping[str, Any]) -> bool:
    """Whether every machine of a deployment is new and available."""
    if not workloads.rolled_out(deployment):
        return False
    newer, wanted = at(deployment, "status.v1beta2"), workloads.wanted(deployment)
    return newer is None or all(newer.get(name) == wanted for name in ("upToDateReplicas", "availableReplicas"))
