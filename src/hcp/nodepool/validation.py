"""What can be wrong in a NodePool by itself, said in plain sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hcp.api import defaults
from hcp.api.names import PLATFORM_KUBEVIRT, PLATFORM_NONE
from hcp.api.nodepool import MAX_REPLICAS
from hcp.api.paths import at
from hcp.kube import bounded_json
from hcp.runtime import durations, quantity

_ARCHES = {PLATFORM_KUBEVIRT: {"amd64", "s390x"}, PLATFORM_NONE: {"amd64", "arm64"}}
MAX_NAME = 63
_MIN_MEMORY = 256 * 1024 * 1024
_MAX_AMOUNT = 2**60
MAX_DEPTH = 64
MAX_DEVICES = 256
_DURATION_MAX = 365 * 86400
_SHARE = re.compile(r"[0-9]{1,3}%")


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
    for field in ("maxSurge", "maxUnavailable"):
        if problem := _share_problem(field, rolling.get(field)):
            return problem
    for field in ("nodeDrainTimeout", "nodeVolumeDetachTimeout"):
        if problem := _duration_problem(field, spec.get(field)):
            return problem
    if str(rolling.get("maxSurge", 1)) in ("0", "0%") and str(rolling.get("maxUnavailable", 0)) in ("0", "0%"):
        return "maxSurge and maxUnavailable are both zero: no machine could ever be replaced"
    return None


def _share_problem(field: str, value: Any) -> str | None:
    """Cluster API reads these into 32 bits, for all clusters at once: a value it cannot read is not handed on."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_REPLICAS):
        return None
    if isinstance(value, str) and _SHARE.fullmatch(value):
        return None
    return f"{field} has to be a number from 0 to {MAX_REPLICAS} or a percentage such as 25%"


def _duration_problem(field: str, value: Any) -> str | None:
    if value in (None, ""):
        return None
    seconds = durations.parse(str(value))
    if seconds is None or seconds > _DURATION_MAX:
        return f"{field} has to be a duration of at most a year, such as 90s or 1h30m"
    return None


def scaling_problem(spec: Mapping[str, Any]) -> str | None:
    """Why the pool's size settings contradict each other."""
    scaling = spec.get("autoScaling")
    if scaling and spec.get("replicas") is not None:
        return "only one of replicas and autoScaling can be set"
    if scaling and int(scaling.get("max") or 0) < int(scaling.get("min") or 0):
        return "autoScaling.max is smaller than autoScaling.min"
    return None


def foreign_platform(spec: Mapping[str, Any], cluster_spec: Mapping[str, Any]) -> str | None:
    """Why a pool cannot be of its cluster: machines of one platform are not made, or let in, in another's cluster."""
    mine, its = (at(found, "platform.type") for found in (spec, cluster_spec))
    if mine == its:
        return None
    return f"the node pool is of platform {mine}, its hosted cluster of platform {its}; make a pool of platform {its}"


def unmanaged_problem(name: str, spec: Mapping[str, Any]) -> str | None:
    """Why machines of the user's own cannot join as this pool."""
    if bounded_json.depth(spec) > MAX_DEPTH:
        return f"spec has a field that is nested deeper than {MAX_DEPTH} levels"
    if len(name) > MAX_NAME:
        return f"the name of the node pool has more than {MAX_NAME} characters: it cannot be a label of its nodes"
    return None


def platform_problem(spec: Mapping[str, Any]) -> str | None:
    """Why the KubeVirt block cannot be turned into a VM."""
    platform = spec.get("platform") or {}
    if bounded_json.depth(spec) > MAX_DEPTH:
        return f"spec has a field that is nested deeper than {MAX_DEPTH} levels"
    if platform.get("type") != PLATFORM_KUBEVIRT:
        return f"platform {platform.get('type')!r} is not supported, only {PLATFORM_KUBEVIRT} and {PLATFORM_NONE}"
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
    devices = [(device.get("deviceName"), int(device.get("count", 1))) for device in kubevirt.get("hostDevices") or []]
    for name, count in devices:
        if count < 1:
            return f"host device {name!r} has a count below 1"
    if sum(count for _, count in devices) > MAX_DEVICES:
        return f"more than {MAX_DEVICES} host devices for one machine"
    return _amount_problem(kubevirt)


def arch_problem(spec: Mapping[str, Any], payload_arch: str) -> str | None:
    """Why the pool's architecture does not fit the platform or the hosted cluster's release."""
    arch, platform = spec.get("arch") or "amd64", at(spec, "platform.type") or PLATFORM_KUBEVIRT
    if arch not in _ARCHES.get(platform, {arch}):
        return f"machines of platform {platform} cannot have architecture {arch!r}"
    if payload_arch and payload_arch not in ("Multi", arch.upper()):
        return f"the hosted cluster's release is for {payload_arch}, the node pool asks for {arch}"
    return None


def _amount_problem(kubevirt: Mapping[str, Any]) -> str | None:
    compute, root = kubevirt.get("compute") or {}, kubevirt.get("rootVolume") or {}
    memory = quantity.parse(compute.get("memory") or defaults.MEMORY)
    size = quantity.parse(at(root, "persistent.size") or defaults.ROOT_SIZE)
    if memory is None or not _MIN_MEMORY <= memory <= _MAX_AMOUNT:
        return f"compute.memory {compute.get('memory')!r} is not a quantity a node can live with; write it like 8Gi"
    if size is None or not 0 < size <= _MAX_AMOUNT:
        return "rootVolume.persistent.size is not a quantity above zero; write it like 32Gi"
    return None
