"""What an absent field means where the API server cannot fill it in: pure functions, spec in, value out.

The operator uses them on every pass, so a cluster written by hand behaves like one written by the command line.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from hcp.api import names
from hcp.api.kubevirt import DEFAULT_CORES, DEFAULT_MEMORY, DEFAULT_ROOT_SIZE

Spec = Mapping[str, Any]
GENERATE_ID_LENGTH = 10
ADVERTISE_V4 = "172.20.0.1"
ADVERTISE_V6 = "fd00::1"
API_PORT = 6443
INGRESS_SERVICES = {
    "APIServer": "LoadBalancer",
    "Ignition": "Route",
    "Konnectivity": "Route",
    "OAuthServer": "Route",
}
AUTOSCALER = {
    "maxPodGracePeriod": 600,
    "maxNodeProvisionTime": "15m",
    "maxFreeDifferenceRatioPercent": 10,
    "podPriorityThreshold": -10,
    "expanders": ["Priority", "LeastWaste"],
}


def advertise_address(spec: Spec) -> str:
    """The address under which the guest's pods find the API."""
    networking = spec.get("networking") or {}
    given = (networking.get("apiServer") or {}).get("advertiseAddress")
    if given:
        return str(given)
    services = networking.get("serviceNetwork") or [{}]
    return ADVERTISE_V6 if ":" in str(services[0].get("cidr", "")) else ADVERTISE_V4


def api_port(spec: Spec) -> int:
    networking = spec.get("networking") or {}
    return int((networking.get("apiServer") or {}).get("port") or API_PORT)


def autoscaling(spec: Spec) -> dict[str, Any]:
    return {**AUTOSCALER, **{k: v for k, v in (spec.get("autoscaling") or {}).items() if v is not None}}


def services(spec: Spec) -> list[dict[str, Any]]:
    """The given services, and those that are missing published by the usual way."""
    given = [dict(entry) for entry in spec.get("services") or []]
    have = {entry.get("service") for entry in given}
    missing = [
        {"service": name, "servicePublishingStrategy": {"type": kind}}
        for name, kind in INGRESS_SERVICES.items()
        if name not in have
    ]
    return given + missing


def publishing(spec: Spec, service: str) -> dict[str, Any]:
    """How one service is published."""
    for entry in services(spec):
        if entry.get("service") == service:
            return dict(entry.get("servicePublishingStrategy") or {})
    return {"type": "None"}


def hosted_cluster(cluster: Mapping[str, Any], *, cluster_id: str, infra_id: str | None = None) -> dict[str, Any]:
    """The cluster with everything filled in that is made once: ids, KubeVirt settings, missing services.

    A new random part is drawn only where none was kept, so applying it twice changes nothing.
    """
    made = copy.deepcopy(dict(cluster))
    spec = made.setdefault("spec", {})
    if not spec.get("clusterID"):
        spec["clusterID"] = cluster_id
    if not spec.get("infraID"):
        spec["infraID"] = infra_id or names.new_infra_id(made["metadata"]["name"])
    networking = spec.setdefault("networking", {})
    networking.setdefault("networkType", "OVNKubernetes")
    networking.setdefault("allocateNodeCIDRs", "Disabled")
    if (spec.get("platform") or {}).get("type") == "KubeVirt":
        virt = spec["platform"].setdefault("kubevirt", {})
        if not virt.get("generateID"):
            virt["generateID"] = names.random_suffix(GENERATE_ID_LENGTH)
        if not (spec.get("dns") or {}).get("baseDomain"):
            virt.setdefault("baseDomainPassthrough", True)
        spec["services"] = services(spec)
    return made


def pool_release(pool: Spec, cluster: Spec) -> str:
    """The release image of a node pool: its own, else its cluster's."""
    own = (pool.get("release") or {}).get("image")
    return str(own or (cluster.get("release") or {}).get("image") or "")


def pool_kubevirt(pool: Spec) -> dict[str, Any]:
    """The KubeVirt block of a node pool with every default in it, also when the block is absent."""
    made = copy.deepcopy(dict((pool.get("platform") or {}).get("kubevirt") or {}))
    root = made.setdefault("rootVolume", {})
    root.setdefault("type", "Persistent")
    root.setdefault("persistent", {}).setdefault("size", DEFAULT_ROOT_SIZE)
    root.setdefault("cacheStrategy", {}).setdefault("type", "None")
    compute = made.setdefault("compute", {})
    compute.setdefault("memory", DEFAULT_MEMORY)
    compute.setdefault("cores", DEFAULT_CORES)
    compute.setdefault("qosClass", "Burstable")
    made.setdefault("networkInterfaceMultiqueue", "Enable")
    if made.get("attachDefaultNetwork") is None:
        made["attachDefaultNetwork"] = True
    for device in made.get("hostDevices") or []:
        device.setdefault("count", 1)
    return made


def pool_management(pool: Spec) -> dict[str, Any]:
    """How a node pool is updated, with every default in it."""
    made = copy.deepcopy(dict(pool.get("management") or {}))
    made["upgradeType"] = made.get("upgradeType") or "Replace"
    made.setdefault("autoRepair", False)
    replace = made.setdefault("replace", {})
    replace.setdefault("strategy", "RollingUpdate")
    rolling = replace.setdefault("rollingUpdate", {})
    rolling.setdefault("maxSurge", 1)
    rolling.setdefault("maxUnavailable", 0)
    made.setdefault("inPlace", {}).setdefault("maxUnavailable", 1)
    return made


def paused(value: str | None, now: str) -> tuple[bool, str | None]:
    """Whether ``pausedUntil`` holds now, and why it cannot be read when it cannot.

    ``now`` is an RFC 3339 time in UTC; an unreadable value pauses nothing.
    """
    from datetime import datetime

    if not value or value in ("false", "False"):
        return False, None
    if value in ("true", "True"):
        return True, None
    try:
        until = datetime.fromisoformat(value.upper().replace("Z", "+00:00"))
        if until.tzinfo is None:
            raise ValueError("it has no time zone")
        return until > datetime.fromisoformat(now.upper().replace("Z", "+00:00")), None
    except ValueError as error:
        return False, f"pausedUntil {value!r} is neither true, false nor an RFC3339 date: {error}"
