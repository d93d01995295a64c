"""What can be wrong in a NodePool by itself, said in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.runtime import quantity

_ARCHES = {"amd64", "s390x"}
_MIN_MEMORY = 256 * 1024 * 1024


def management_problem(spec: Mapping[str, Any]) -> str | None:
    """Why the pool's update settings cannot work; None when they can."""
    management = spec.get("management") or {}
    kind = management.get("upgradeType") or "Replace"
    if kind == "InPlace":
        return "upgradeType InPlace is not supported on KubeVirt; use Replace"
    replace = management.get("replace") or {}
    if replace.get("strategy") not in (None, "RollingUpdate", "OnDelete"):
        return f"unknown replace strategy {replace.get('strategy')!r}"
    rolling = replace.get("rollingUpdate") or {}
    if str(rolling.get("maxSurge", 1)) in ("0", "0%") and str(rolling.get("maxUnavailable", 0)) in ("0", "0%"):
        return "maxSurge and maxUnavailable are both zero: no machine could ever be replaced"
    return None


def scaling_problem(spec: Mapping[str, Any]) -> str | None:
    """Why the pool's size settings contradict each other."""
    scaling = spec.get("autoScaling")
    if scaling and spec.get("replicas") is not None:
        return "only one of replicas and autoScaling can be set"
    if scaling and int(scaling.get("max") or 0) < int(scaling.get("min") or 0):
        return "autoScaling.max is smaller than autoScaling.min"
    return None


def platform_problem(spec: Mapping[str, Any]) -> str | None:
    """Why the KubeVirt block cannot be turned into a VM."""
    platform = spec.get("platform") or {}
    if platform.get("type") != "KubeVirt":
        return f"platform {platform.get('type')!r} is not supported; this operator makes KubeVirt machines"
    kubevirt = platform.get("kubevirt")
    if kubevirt is None:
        return "platform.kubevirt is missing"
    root = kubevirt.get("rootVolume")
    if root is None:
        return "platform.kubevirt.rootVolume is missing"
    if root.get("type", "Persistent") == "Persistent" and root.get("persistent") is None:
        return "rootVolume is of type Persistent but has no persistent block"
    if kubevirt.get("attachDefaultNetwork", True) is False and not kubevirt.get("additionalNetworks"):
        return "the default network is not attached and there are no additional networks"
    for device in kubevirt.get("hostDevices") or []:
        if int(device.get("count", 1)) < 1:
            return f"host device {device.get('deviceName')!r} has a count below 1"
    return _amount_problem(kubevirt)


def arch_problem(spec: Mapping[str, Any], payload_arch: str) -> str | None:
    """Why the pool's architecture does not fit the platform or the hosted cluster's release."""
    arch = spec.get("arch") or "amd64"
    if arch not in _ARCHES:
        return f"KubeVirt machines cannot have architecture {arch!r}"
    if payload_arch and payload_arch not in ("Multi", arch.upper()):
        return f"the hosted cluster's release is for {payload_arch}, the node pool asks for {arch}"
    return None


def _amount_problem(kubevirt: Mapping[str, Any]) -> str | None:
    compute, root = kubevirt.get("compute") or {}, kubevirt.get("rootVolume") or {}
    memory = quantity.parse(compute.get("memory") or "8Gi")
    size = quantity.parse((root.get("persistent") or {}).get("size") or "32Gi")
    if memory is None or memory < _MIN_MEMORY:
        return f"compute.memory {compute.get('memory')!r} is not a quantity a node can live with; write it like 8Gi"
    if size is None or size <= 0:
        return "rootVolume.persistent.size is not a quantity above zero; write it like 32Gi"
    return None
