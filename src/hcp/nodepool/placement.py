"""The phases about where the VMs run: the KubeVirt block, what the infra can give, the boot image and its cache."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hcp.api import conditions as c
from hcp.api import defaults
from hcp.api.names import ANNOTATION_KUBEVIRT_TOPOLOGY_SPREAD
from hcp.errors import HcpError
from hcp.kube.errors import AlreadyExists, Forbidden, NotFound
from hcp.kube.resources import DATAVOLUMES, KUBEVIRTS, NODES, STORAGECLASSES
from hcp.kubevirt.infra import Infra, credentials
from hcp.nodepool import validation
from hcp.nodepool.bootimage import (
    LABEL_ROLE,
    LABEL_UID,
    ROLE,
    ImportState,
    boot_image,
    cache_volume,
    cached,
    choose_cache,
    import_state,
)
from hcp.nodepool.scope import Object, Scope
from hcp.runtime import Result, quantity

# KubeVirt asks the scheduler for a tenth of a machine's cores unless they are dedicated.
_CORES_SHARED = 10
_IMPORT_LOOK = 15.0


async def platform(scope: Scope) -> Result | None:
    """Check the KubeVirt block and find the infra cluster."""
    problem = validation.platform_problem(scope.spec)
    if problem:
        raise scope.refuse(
            c.VALID_MACHINE_CONFIG, c.VALIDATION_FAILED, f"validation of NodePool KubeVirt platform failed: {problem}"
        )
    problem = validation.foreign_platform(scope.spec, scope.cluster_spec)
    if problem:
        raise scope.refuse(c.VALID_PLATFORM_CONFIG, c.VALIDATION_FAILED, problem)
    given = credentials(scope.cluster_spec.get("platform") or {})
    if given:
        # Kept here because deleting must also work when the hosted cluster is gone.
        scope.status.setdefault("platform", {}).setdefault("kubeVirt", {})["credentials"] = dict(given)
    try:
        scope.infra = await scope.tools.infras.get(scope.hosted, given)
        ours = None if scope.infra.external else scope.tools.watches.management_nodes.list()
        problem = await infra_problem(scope.infra, scope.platform, ours)
    except HcpError as error:
        scope.set(c.VALID_PLATFORM_CONFIG, False, c.VALIDATION_FAILED, f"the infra cluster cannot be asked: {error}")
        raise
    # Said, not enforced: storage or memory may appear later, and machines then go on by themselves.
    scope.set(c.VALID_PLATFORM_CONFIG, not problem, c.VALIDATION_FAILED if problem else c.AS_EXPECTED, problem or "")
    if not scope.status.get("version") and ANNOTATION_KUBEVIRT_TOPOLOGY_SPREAD not in scope.pool_annotations:
        scope.annotations[ANNOTATION_KUBEVIRT_TOPOLOGY_SPREAD] = "true"
    return Result(60) if problem else None


async def infra_problem(infra: Infra, block: Mapping[str, Any], nodes: list[Object] | None = None) -> str | None:
    """What the infra cluster lacks for this pool; None when nothing is known to be missing.

    Nodes are asked for unless given. What we may not look at is left out; a cluster that does not answer is an error.
    """
    wanted = ((block.get("rootVolume") or {}).get("persistent") or {}).get("storageClass")
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
        devices = ((item.get("spec") or {}).get("configuration") or {}).get("permittedHostDevices") or {}
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
    rooms = [room for node in nodes if (room := (node.get("status") or {}).get("allocatable"))]
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


async def image(scope: Scope) -> Result | None:
    """Which boot disk; with a cache, have it imported early and drop those of older releases."""
    try:
        found = boot_image(scope.platform, scope.known_release().boot_disk)
    except HcpError as error:
        raise scope.refuse(c.VALID_PLATFORM_IMAGE, c.VALIDATION_FAILED, str(error)) from error
    scope.image = found
    shown = (found.source.get("registry") or found.source.get("http") or {}).get("url", "")
    state = ImportState(done=True)
    if cached(scope.platform, found) and scope.infra is not None:
        volume = await _ensure_cache(scope, scope.infra)
        scope.cache_name = str(volume["metadata"]["name"])
        scope.status.setdefault("platform", {}).setdefault("kubeVirt", {})["cacheName"] = scope.cache_name
        state = import_state(volume)
    # A failed import is said, not enforced: CDI tries again, and machines wait for their clones by themselves.
    reason = c.VALIDATION_FAILED if state.failed else c.AS_EXPECTED
    message = "; ".join(part for part in (f"Bootstrap KubeVirt Image is {shown}", state.message) if part)
    scope.set(c.VALID_PLATFORM_IMAGE, not state.failed, reason, message)
    return None if state.done else Result(_IMPORT_LOOK)


async def _ensure_cache(scope: Scope, infra: Infra) -> Object:
    uid = scope.pool["metadata"]["uid"]
    selector = f"{LABEL_ROLE}={ROLE},{LABEL_UID}={uid}"
    volumes = await infra.client.list(DATAVOLUMES, infra.namespace, selector)
    known = ((scope.status.get("platform") or {}).get("kubeVirt") or {}).get("cacheName")
    assert scope.image is not None
    alive = [volume for volume in volumes if not volume["metadata"].get("deletionTimestamp")]
    chosen, stale = choose_cache(alive, scope.image.digest, known)
    used = next((volume for volume in alive if volume["metadata"]["name"] == chosen), None)
    if used is None:
        used = cache_volume(infra.namespace, uid, scope.platform, scope.image)
        with contextlib.suppress(AlreadyExists):
            await infra.client.create(used)
    for name in stale:
        try:
            await infra.client.delete(DATAVOLUMES, name, infra.namespace)
        except NotFound:
            continue
    return used
