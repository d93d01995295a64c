"""The phases about where the VMs run: the KubeVirt block, what the infra can give, the boot image and its cache."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hcp.api import defaults
from hcp.api.paths import at
from hcp.kube.errors import Forbidden, NotFound
from hcp.kube.resources import KUBEVIRTS, NODES, STORAGECLASSES
from hcp.kubevirt.infra import Infra
from hcp.nodepool.scope import Object
from hcp.runtime import quantity

# KubeVirt asks the scheduler for a tenth of a machine's cores unless they are dedicated.
_CORES_SHARED = 10
_IMPORT_LOOK = 15.0


async def infra_problem(infra: Infra, block: Mapping[str, Any], nodes: list[Object] | None = None) -> str | None:
    """What the infra cluster lacks for this pool; None when nothing is known to be missing.

    Nodes are asked for unless given. What we may not look at is left out; a cluster that does not answer is an error.
    """
    wanted = at(block, "rootVolume.persistent.storageClass")
    if wanted:
        try:
            await infra.client.get(STORAGECLASSES, wanted)
        except NotFound:
            return f"the infra cluster has no storage class {wanted!r}"
        except Forbidden:
            pass
    return await _devices_problem(infra, block) or await _size_problem(infra, block, nodes)


async def _devices_problem(infra: Infra, block: Mapping[str, Any]) -> str | None:
    names = {device.get("deviceName") for device in block.get("hostDevices") or []}
    if not names:
        return None
    try:
        found = await infra.client.list(KUBEVIRTS)
    except (Forbidden, NotFound):
        return None
    permitted: set[str] = set()
    for item in found:
        devices = at(item, "spec.configuration.permittedHostDevices") or {}
        for entries in devices.values():
            permitted.update(entry.get("resourceName", "") for entry in entries)
    missing = sorted(str(name) for name in names - permitted)
    return f"KubeVirt of the infra cluster does not permit host device {', '.join(missing)}" if missing else None


async def _size_problem(infra: Infra, block: Mapping[str, Any], nodes: list[Object] | None) -> str | None:
    compute = block.get("compute") or {}
    memory = quantity.parse(compute.get("memory") or defaults.MEMORY) or Decimal(0)
    guaranteed = compute.get("qosClass") == "Guaranteed"
    cores = int(compute.get("cores") or defaults.CORES)
    asked = Decimal(cores) if guaranteed else Decimal(cores) / _CORES_SHARED
    try:
        nodes = await infra.client.list(NODES) if nodes is None else nodes
    except (Forbidden, NotFound):
        return None
    rooms = [room for node in nodes if (room := at(node, "status.allocatable"))]
    if not rooms:
        return None
    for room in rooms:
        if (quantity.parse(room.get("memory", "0")) or 0) >= memory and (
            quantity.parse(room.get("cpu", "0")) or 0
        ) >= asked:
            return None
    return (
        f"no node of the infra cluster is large enough for a VM with memory {compute.get('memory') or defaults.MEMORY} "
        f"and {cores} {'dedicated ' if guaranteed else ''}cores"
    )
