"""The HostedControlPlane: a projection of the HostedCluster for Cluster API and for tools; nothing reconciles it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import names
from hcp.api.paths import annotations_of, at
from hcp.controlplane.params import Manifest, Params

MIRRORED = (
    names.ANNOTATION_DISABLE_PKI,
    names.ANNOTATION_CLEANUP_CLOUD,
    names.ANNOTATION_RESTART_DATE,
    names.ANNOTATION_CONTROL_PLANE_PRIORITY,
    names.ANNOTATION_API_CRITICAL_PRIORITY,
    names.ANNOTATION_ETCD_PRIORITY,
    names.ANNOTATION_TOPOLOGY,
    names.ANNOTATION_DISABLE_MACHINE_MANAGEMENT,
    names.ANNOTATION_DISABLE_IGNITION_SERVER,
    names.ANNOTATION_POD_SECURITY,
    names.ANNOTATION_KAS_GOGC,
    names.ANNOTATION_KAS_GOMEMLIMIT,
    names.ANNOTATION_KAS_MAX_INFLIGHT,
    names.ANNOTATION_KAS_MAX_MUTATING_INFLIGHT,
    names.ANNOTATION_KAS_VERBOSITY,
    names.ANNOTATION_KAS_GOAWAY_CHANCE,
)
COPIED = (
    "additionalTrustBundle",
    "autoscaling",
    "capabilities",
    "channel",
    "clusterID",
    "configuration",
    "controllerAvailabilityPolicy",
    "dns",
    "etcd",
    "fips",
    "imageContentSources",
    "infraID",
    "infrastructureAvailabilityPolicy",
    "issuerURL",
    "labels",
    "networking",
    "nodeSelector",
    "olmCatalogPlacement",
    "operatorConfiguration",
    "pausedUntil",
    "platform",
    "secretEncryption",
    "serviceAccountSigningKey",
    "services",
    "tolerations",
    "updateService",
)


def hosted_control_plane(p: Params, cluster: Mapping[str, Any]) -> Manifest:
    spec = cluster["spec"]
    annotations = {
        k: v
        for k, v in annotations_of(cluster).items()
        if k in MIRRORED
        or k.startswith((names.ANNOTATION_RESOURCE_OVERRIDE_PREFIX, names.ANNOTATION_IDP_OVERRIDE_PREFIX))
    }
    if not p.autoscaled or names.ANNOTATION_DISABLE_AUTOSCALER in annotations_of(cluster):
        annotations[names.ANNOTATION_DISABLE_AUTOSCALER] = "true"
    projected: Manifest = {key: spec[key] for key in COPIED if key in spec}
    if configuration := _without_empty(projected.pop("configuration", None) or {}):
        projected["configuration"] = configuration
    projected |= {
        "releaseImage": spec["release"]["image"],
        "pullSecret": {"name": "pull-secret"},
        "sshKey": {"name": "ssh-key"} if at(spec, "sshKey.name") else {"name": ""},
    }
    if "controlPlaneRelease" in spec:
        projected["controlPlaneReleaseImage"] = spec["controlPlaneRelease"]["image"]
    if "additionalTrustBundle" in projected:
        projected["additionalTrustBundle"] = {"name": names.USER_CA_BUNDLE}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "HostedControlPlane",
        "metadata": {
            "name": p.name,
            "namespace": p.namespace,
            "labels": {names.LABEL_CAPI_CLUSTER_NAME: p.infra_id, names.LABEL_CONTROL_PLANE_NAMESPACE: p.namespace},
            "annotations": {names.ANNOTATION_CLUSTER: p.key, **annotations},
        },
        "spec": projected,
    }


def _without_empty(block: Mapping[str, Any]) -> Manifest:
    """Blocks that say nothing are left out: an API server makes null of one whose last field is taken away by apply."""
    pruned = {key: _without_empty(value) if isinstance(value, Mapping) else value for key, value in block.items()}
    return {key: value for key, value in pruned.items() if value != {}}
