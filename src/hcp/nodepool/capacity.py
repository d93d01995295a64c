"""What a node of a pool would be, told to the autoscaler: of a pool without nodes it can see none. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import defaults
from hcp.api.names import LABEL_NODEPOOL
from hcp.api.paths import at
from hcp.runtime import quantity

_PREFIX = "capacity.cluster-autoscaler.kubernetes.io"
_WORKER = "node-role.kubernetes.io/worker"
_ARCH = "kubernetes.io/arch"
_MI = 1 << 20
# Of a machine's memory pods get less: a part is the kernel's, and the kubelet keeps 100 Mi free. Rather too much than
# too little: a node for a pod that does not fit on it would be made and removed for ever.
_KERNEL_SHARE, _KEPT = 32, 192 * _MI
# The kubelet keeps a tenth of the disk free; the system and its images need some too.
_DISK_PERCENT, _SYSTEM_DISK = 85, 2 << 30


def told(node_pool: str, spec: Mapping[str, Any], machine: Mapping[str, Any] | None) -> dict[str, str]:
    """For the MachineDeployment; ``machine`` is the VM that its template describes, which a user may have changed."""
    platform = at(spec, "platform.kubevirt") or {}
    domain = at(machine, "spec.template.spec.domain") or {}
    found = {"cpu": str(_cores(domain, platform)), "labels": _labels(node_pool, spec)}
    memory = quantity.parse(at(domain, "memory.guest") or at(platform, "compute.memory") or defaults.MEMORY)
    if memory is not None and (usable := int(memory) - int(memory) // _KERNEL_SHARE - _KEPT) > 0:
        found["memory"] = str(usable)
    disk = quantity.parse(at(platform, "rootVolume.persistent.size") or defaults.ROOT_SIZE)
    if disk is not None and (free := int(disk) * _DISK_PERCENT // 100 - _SYSTEM_DISK) > 0:
        found["ephemeral-disk"] = str(free)
    if taints := ",".join(_taint(one) for one in spec.get("taints") or ()):
        found["taints"] = taints
    return {f"{_PREFIX}/{key}": value for key, value in found.items()}


def _cores(domain: Mapping[str, Any], platform: Mapping[str, Any]) -> int:
    cpu = domain.get("cpu") or {}
    if not cpu.get("cores"):
        return int(at(platform, "compute.cores") or defaults.CORES)
    return int(cpu["cores"]) * int(cpu.get("sockets") or 1) * int(cpu.get("threads") or 1)


def _labels(node_pool: str, spec: Mapping[str, Any]) -> str:
    known = {_ARCH: spec.get("arch") or "amd64", _WORKER: "", LABEL_NODEPOOL: node_pool}
    known |= spec.get("nodeLabels") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(known.items()))


def _taint(one: Mapping[str, Any]) -> str:
    value = f"={one['value']}" if one.get("value") else ""
    return f"{one.get('key', '')}{value}:{one.get('effect', '')}"
