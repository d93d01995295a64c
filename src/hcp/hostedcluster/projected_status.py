"""The status of the HostedControlPlane, which Cluster API and tools read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import conditions as c
from hcp.api import names
from hcp.hostedcluster.version import completed_version
from hcp.runtime.conditions import is_true

MIRRORED = (
    c.AVAILABLE,
    c.DEGRADED,
    c.INFRASTRUCTURE_READY,
    c.ETCD_AVAILABLE,
    c.ETCD_SNAPSHOT_RESTORED,
    c.KUBE_APISERVER_AVAILABLE,
    c.VALID_HCP_CONFIGURATION,
    c.VALID_RELEASE_INFO,
    c.DATA_PLANE_CONNECTION,
    c.CONTROL_PLANE_CONNECTION,
)


def projected(before: Mapping[str, Any] | None, status: Mapping[str, Any], nodes: int) -> dict[str, Any]:
    """What the HostedControlPlane says when the HostedCluster says `status`."""
    known = status.get("conditions") or []
    available = is_true(known, c.AVAILABLE)
    # Machines are let go on only after this, and it never goes back.
    initialized = available or bool((before or {}).get("initialized"))
    result: dict[str, Any] = {
        "ready": available,
        "initialized": initialized,
        "externalManagedControlPlane": True,
        "nodeCount": nodes,
        "conditions": _conditions((before or {}).get("conditions") or [], known, starting=not initialized),
    }
    for source, target in (("version", "versionStatus"), ("controlPlaneVersion", "controlPlaneVersion")):
        if source in status:
            result[target] = status[source]
    if "controlPlaneEndpoint" in status:
        result["controlPlaneEndpoint"] = status["controlPlaneEndpoint"]
    if "kubeconfig" in status:
        result["kubeConfig"] = {"name": "admin-kubeconfig", "key": "kubeconfig"}
    if "kubeadminPassword" in status:
        result["kubeadminPassword"] = {"name": names.KUBEADMIN_PASSWORD}
    if callback := status.get("oauthCallbackURLTemplate"):
        result["oauthCallbackURLTemplate"] = callback
    if version := completed_version(status.get("controlPlaneVersion")):
        # Cluster API compares Machines with this one and wants the v.
        result["version"] = version
    return result


def _conditions(
    before: list[Mapping[str, Any]], known: list[Mapping[str, Any]], *, starting: bool
) -> list[dict[str, Any]]:
    """While a control plane starts, a condition whose words alone differ stays: Cluster API repeats each of them."""
    said = {have["type"]: have for have in before} if starting else {}
    told = []
    for one in known:
        if one["type"] in MIRRORED:
            have = said.get(one["type"], {})
            same = all(have.get(part) == one.get(part) for part in ("status", "reason"))
            told.append(dict(have if same else one))
    return told
