"""What hosted clusters get of the storage of the cluster their machines run in."""

from __future__ import annotations

from hcp.api.paths import annotations_of, at
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.errors import Forbidden, NotFound
from hcp.preflight.result import Finding, ok, unknown, warn

DEFAULT_SNAPSHOT_CLASS = "snapshot.storage.kubernetes.io/is-default-class"
# Of KubeVirt: attaching volumes to running machines, and letting disks of running machines grow.
HOTPLUG, GROWING = "HotplugVolumes", "ExpandDisks"


async def hotplug(client: Client) -> Finding:
    check = "Volumes for running machines"
    try:
        found = await client.list(r.KUBEVIRTS)
    except (Forbidden, NotFound):
        return unknown(check, "the configuration of KubeVirt cannot be read")
    gates = {gate for one in found for gate in at(one, "spec.configuration.developerConfiguration.featureGates") or ()}
    hint = "add it to featureGates of the KubeVirt object; OpenShift Virtualization has it on"
    if HOTPLUG not in gates:
        return warn(check, f"feature gate {HOTPLUG} is off: hosted clusters have no volumes", hint)
    if GROWING not in gates:
        return warn(check, f"feature gate {GROWING} is off: volumes of hosted clusters cannot be made larger", hint)
    return ok(check, "can be attached, and made larger")


async def snapshots(client: Client) -> Finding:
    check = "Default VolumeSnapshotClass"
    if not await client.has(r.VOLUMESNAPSHOTCLASSES):
        return warn(
            check, "the cluster has no snapshots: hosted clusters have none", "optional; a CSI driver with them"
        )
    try:
        classes = await client.list(r.VOLUMESNAPSHOTCLASSES)
    except (Forbidden, NotFound) as error:
        return unknown(check, "not allowed to look at VolumeSnapshotClasses", error.hint or "")
    default = [o["metadata"]["name"] for o in classes if annotations_of(o).get(DEFAULT_SNAPSHOT_CLASS) == "true"]
    if not default:
        said = "there is none" if not classes else f"none of {len(classes)} classes is the default"
        return warn(check, said, "mark one as default, or map classes with --infra-volumesnapshot-class-mapping")
    return ok(check, ", ".join(sorted(default)))
