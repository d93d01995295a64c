"""What hosted clusters get of the storage of the cluster their machines run in."""

from __future__ import annotations

from dataclasses import replace

from hcp.api.paths import annotations_of, at
from hcp.controlplane import storage_plan
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.errors import Forbidden, NotFound
from hcp.preflight import platform
from hcp.preflight.result import FAIL, UNKNOWN, WARN, Finding, ok, unknown, warn

# Of KubeVirt: attaching volumes to running machines, and letting disks of running machines grow.
HOTPLUG, GROWING = "HotplugVolumes", "ExpandDisks"


async def hotplug(client: Client, to_see: str = "") -> Finding:
    """`to_see`, here and below, is what to do where nobody may look."""
    check = "Volumes for running machines"
    try:
        found = await client.list(r.KUBEVIRTS)
    except Forbidden as error:
        return unknown(check, "not allowed to look at KubeVirt's configuration", to_see or error.hint or "")
    except NotFound:
        found = []
    if not found:
        return unknown(check, "there is no object of kind KubeVirt to read feature gates from")
    gates = {gate for one in found for gate in at(one, "spec.configuration.developerConfiguration.featureGates") or ()}
    hint = "add it to featureGates of the KubeVirt object; OpenShift Virtualization has it on"
    if HOTPLUG not in gates:
        return warn(check, f"feature gate {HOTPLUG} is off: hosted clusters have no volumes", hint)
    if GROWING not in gates:
        return warn(check, f"feature gate {GROWING} is off: volumes of hosted clusters cannot be made larger", hint)
    return ok(check, "can be attached, and made larger")


async def default_class(client: Client, to_see: str = "") -> Finding:
    """Of another infra cluster: disks of machines and volumes may name theirs, so none is no failure."""
    found = await platform.storage(client)
    if found.state == FAIL:
        hint = "mark one as default, or give --root-volume-storage-class and --infra-storage-class-mapping"
        return replace(found, state=WARN, hint=hint)
    return replace(found, hint=to_see or found.hint) if found.state == UNKNOWN else found


async def snapshots(client: Client, to_see: str = "") -> Finding:
    check = "Default VolumeSnapshotClass"
    if not await client.has(r.VOLUMESNAPSHOTCLASSES):
        return warn(
            check, "the cluster has no snapshots: hosted clusters have none", "optional; a CSI driver with them"
        )
    try:
        classes = await client.list(r.VOLUMESNAPSHOTCLASSES)
    except (Forbidden, NotFound) as error:
        return unknown(check, "not allowed to look at VolumeSnapshotClasses", to_see or error.hint or "")
    marked = [one for one in classes if annotations_of(one).get(storage_plan.DEFAULT_SNAPSHOT_CLASS) == "true"]
    hint = "mark one as default, or map classes with --infra-volumesnapshot-class-mapping"
    if not marked:
        said = "there is none" if not classes else f"none of {len(classes)} classes is the default"
        return warn(check, said, hint)
    named = ", ".join(sorted(one["metadata"]["name"] for one in marked))
    driver = await _default_driver(client)
    if driver and driver not in {one.get("driver") for one in marked}:
        # A driver takes snapshots of its own volumes only.
        return warn(check, f"{named} is not of {driver}, the driver of the default StorageClass", hint)
    return ok(check, named)


async def _default_driver(client: Client) -> str:
    """Of the default StorageClass; nothing where there is none, or nobody may look."""
    try:
        chosen = storage_plan.default_class(await client.list(r.STORAGECLASSES))
    except Forbidden:
        return ""
    return str((chosen or {}).get("provisioner") or "")
