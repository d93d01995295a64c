"""Storage inside the guest: its classes, the driver on every node, and the controller of snapshots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hcp.api.names import GROUP, LABEL_MANAGED_BY, MANAGED_BY
from hcp.api.paths import annotations_of
from hcp.controlplane.storage_plan import (
    DEFAULT_CLASS,
    DEFAULT_SNAPSHOT_CLASS,
    GuestClass,
    Plan,
)
from hcp.csi.kubevirt import DRIVER
from hcp.csi.kubevirt.settings import BUS_PARAMETER, CLASS_PARAMETER, DEFAULT_BUS, SNAPSHOT_CLASS_PARAMETER

Manifest = dict[str, Any]
NODE = "kubevirt-csi-node"
SNAPSHOTS = "csi-snapshot-controller"
# The class's own name. A tenant's copy of a class of ours carries its labels, and where it was made with all that the
# original has, even the word of the API server about who wrote it; its name is another one.
MADE_AS = f"{GROUP}/made-as"
# A tenant may choose another default; what it chose stays.
CHOSEN_BY_TENANTS = (DEFAULT_CLASS, DEFAULT_SNAPSHOT_CLASS)
_READ = ["get", "list", "watch"]
_SNAPSHOT_GROUP = "snapshot.storage.k8s.io"


@dataclass(frozen=True)
class GuestStorage:
    """What is to be made, and of which images."""

    plan: Plan
    driver_image: str
    # The kinds of snapshots, where the guest has snapshot classes.
    definitions: tuple[Manifest, ...] = field(default=(), compare=False)


def classes(storage: GuestStorage) -> list[Manifest]:
    found = [_storage_class(one) for one in storage.plan.classes]
    return found + [_snapshot_class(one) for one in storage.plan.snapshot_classes]


def _storage_class(one: GuestClass) -> Manifest:
    parameters = {BUS_PARAMETER: DEFAULT_BUS} | ({CLASS_PARAMETER: one.infra} if one.infra else {})
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": _metadata(one, DEFAULT_CLASS),
        "provisioner": DRIVER,
        "parameters": parameters,
        "allowVolumeExpansion": one.expands,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }


def _snapshot_class(one: GuestClass) -> Manifest:
    made: Manifest = {
        "apiVersion": f"{_SNAPSHOT_GROUP}/v1",
        "kind": "VolumeSnapshotClass",
        "metadata": _metadata(one, DEFAULT_SNAPSHOT_CLASS),
        "driver": DRIVER,
        "deletionPolicy": "Delete",
    }
    if one.infra:
        made["parameters"] = {SNAPSHOT_CLASS_PARAMETER: one.infra}
    return made


def _metadata(one: GuestClass, mark: str) -> Manifest:
    annotations = {MADE_AS: one.name, **({mark: "true"} if one.default else {})}
    return {"name": one.name, "labels": {LABEL_MANAGED_BY: MANAGED_BY}, "annotations": annotations}


def chosen_by_tenants(obj: Manifest) -> bool:
    """Whether it says something that is the tenant's to decide."""
    return any(key in CHOSEN_BY_TENANTS for key in annotations_of(obj))


def as_chosen(wanted: Manifest, live: Manifest | None) -> Manifest:
    """The class as we want it, except for what the tenant decides."""
    if live is None:
        return wanted
    kept = {key: value for key, value in annotations_of(live).items() if key in CHOSEN_BY_TENANTS}
    ours = {**annotations_of(wanted), **{k: v for k, v in kept.items() if k in annotations_of(wanted)}}
    return {**wanted, "metadata": {**wanted["metadata"], "annotations": ours}}


def csi_driver() -> Manifest:
    spec = {
        "attachRequired": True,
        "podInfoOnMount": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
    }
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": spec}


def controller_rules(*, snapshots: bool) -> list[Manifest]:
    """What driver and sidecars do in the guest. No Secrets: no class of ours needs one."""
    rules = [
        _rule("", "persistentvolumes", [*_READ, "create", "patch", "delete"]),
        _rule("", "persistentvolumeclaims", [*_READ, "update", "patch"]),
        _rule("", "persistentvolumeclaims/status", ["update", "patch"]),
        _rule("", "nodes pods", _READ),
        _rule("", "events", ["list", "watch", "create", "update", "patch"]),
        _rule("storage.k8s.io", "storageclasses csinodes volumeattributesclasses", _READ),
        _rule("storage.k8s.io", "volumeattachments", [*_READ, "patch"]),
        _rule("storage.k8s.io", "volumeattachments/status", ["patch"]),
    ]
    if snapshots:
        rules += [
            _rule(_SNAPSHOT_GROUP, "volumesnapshots volumesnapshotclasses", _READ),
            _rule(_SNAPSHOT_GROUP, "volumesnapshotcontents", [*_READ, "update", "patch"]),
            _rule(_SNAPSHOT_GROUP, "volumesnapshotcontents/status", ["update", "patch"]),
        ]
    return rules


def snapshot_controller_rules() -> list[Manifest]:
    return [
        _rule("", "persistentvolumes", _READ),
        _rule("", "persistentvolumeclaims", [*_READ, "update", "patch"]),
        _rule("", "events", ["list", "watch", "create", "update", "patch"]),
        _rule("storage.k8s.io", "storageclasses", _READ),
        _rule(_SNAPSHOT_GROUP, "volumesnapshotclasses", _READ),
        _rule(_SNAPSHOT_GROUP, "volumesnapshotcontents", [*_READ, "create", "update", "patch", "delete"]),
        _rule(_SNAPSHOT_GROUP, "volumesnapshotcontents/status", ["patch"]),
        _rule(_SNAPSHOT_GROUP, "volumesnapshots", [*_READ, "create", "update", "patch", "delete"]),
        _rule(_SNAPSHOT_GROUP, "volumesnapshots/status", ["update", "patch"]),
    ]


def _rule(group: str, resources: str, verbs: list[str]) -> Manifest:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": list(verbs)}
