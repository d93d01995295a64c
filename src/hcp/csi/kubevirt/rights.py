"""What the controller does in the infra namespace, as rights: one table for the role we bind where machines run beside
the control plane, and for what the owner of another infra cluster has to grant."""

from __future__ import annotations

from dataclasses import dataclass

READ = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class Right:
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    purpose: str


VOLUMES = (
    Right("cdi.kubevirt.io", ("datavolumes",), (*READ, "create", "patch", "delete"), "the guest's volumes"),
    Right("cdi.kubevirt.io", ("datavolumes/source",), ("create",), "copies of the guest's volumes"),
    Right("", ("persistentvolumeclaims",), (*READ, "patch"), "making the guest's volumes larger"),
    Right("kubevirt.io", ("virtualmachines", "virtualmachineinstances"), READ, "which machine has which volume"),
    Right(
        "subresources.kubevirt.io",
        ("virtualmachines/addvolume", "virtualmachines/removevolume"),
        ("update",),
        "attaching the guest's volumes",
    ),
)
SNAPSHOTS = (
    Right(
        "snapshot.storage.k8s.io", ("volumesnapshots",), (*READ, "create", "delete"), "snapshots of the guest's volumes"
    ),
)
ALL = (*VOLUMES, *SNAPSHOTS)
# Where classes can be looked at: empty block volumes, copies and restored snapshots without a pod of CDI. None may be
# deleted: claims go with their DataVolumes, and those of etcd and of machines lie beside them.
CLAIMS = (Right("", ("persistentvolumeclaims",), ("create",), "the guest's volumes, made at once"),)
