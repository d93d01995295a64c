"""The objects of the infra cluster behind volumes and snapshots, and whose they are. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.names import (
    LABEL_CSI_ROLE,
    LABEL_INFRA_ID,
    MARK_CSI_BACKING,
    MARK_CSI_PUBLISHED,
    MARK_CSI_SIZE,
    MARK_CSI_SOURCE,
)
from hcp.api.paths import annotations_of, at, labels_of
from hcp.csi.kubevirt.access import BLOCK, READ_WRITE_MANY, Access
from hcp.csi.kubevirt.settings import Settings
from hcp.runtime.quantity import parse as quantity

Object = dict[str, Any]
VOLUME, SNAPSHOT = "volume", "snapshot"
BLANK = "blank"
# CDI's words for a DataVolume whose claim is there already, and for a claim that needs no more work.
_ADOPTS, _READY_FOR = "cdi.kubevirt.io/allowClaimAdoption", "cdi.kubevirt.io/storage.populatedFor"


@dataclass(frozen=True, slots=True)
class Backing:
    """A claim of the infra cluster: a file in it, or all of it, is the disk that a guest sees."""

    storage_class: str
    block: bool
    access_modes: tuple[str, ...]
    size: int

    def text(self) -> str:
        words = {"class": self.storage_class, "block": self.block, "access": self.access_modes, "size": self.size}
        return json.dumps(words, sort_keys=True)


def backing_of(claim: Mapping[str, Any]) -> Backing:
    return Backing(
        str(at(claim, "spec.storageClassName") or ""),
        at(claim, "spec.volumeMode") == BLOCK,
        tuple(at(claim, "spec.accessModes") or ()),
        int(quantity(at(claim, "spec.resources.requests.storage")) or 0),
    )


def backing_then(snapshot: Mapping[str, Any]) -> Backing | None:
    """How the claim was when the snapshot was made; it may be gone since."""
    text = annotations_of(snapshot).get(MARK_CSI_BACKING)
    if text is None:
        return None
    value = json.loads(text)
    return Backing(value["class"], value["block"], tuple(value["access"]), value["size"])


def marks(settings: Settings, role: str) -> dict[str, str]:
    return {LABEL_INFRA_ID: settings.infra_id, LABEL_CSI_ROLE: role}


def selector(settings: Settings, role: str) -> str:
    return ",".join(f"{key}={value}" for key, value in marks(settings, role).items())


def ours(obj: Mapping[str, Any] | None, settings: Settings, role: str) -> bool:
    """Whether this driver made it for this hosted cluster. Everything else is not there, as far as a guest can tell.

    The infra id alone is not enough: disks of machines carry it too, and the namespace holds the data of etcd.
    """
    if obj is None or obj["metadata"].get("deletionTimestamp"):
        return False
    labels = labels_of(obj)
    return all(labels.get(key) == value for key, value in marks(settings, role).items())


def data_volume(
    settings: Settings,
    handle: str,
    need: Access,
    size: int,
    infra_class: str,
    source: Mapping[str, Any],
    *,
    room: int = 0,
    adopts: bool = False,
) -> Object:
    """An empty, cloned or restored volume. Kind and access are left to CDI, which knows the class, unless several
    machines shall share it. `room` is what CDI wants to have for a copy; one that adopts its claim copies nothing."""
    storage: Object = {"resources": {"requests": {"storage": str(max(size, room))}}}
    if infra_class:
        storage["storageClassName"] = infra_class
    if need.shared:
        storage |= {"accessModes": [READ_WRITE_MANY], "volumeMode": BLOCK}
    return {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {
            "name": handle,
            "namespace": settings.namespace,
            "labels": marks(settings, VOLUME),
            "annotations": {
                # The object stays beside its claim; nobody waits for a first consumer, which would be the machine.
                "cdi.kubevirt.io/storage.deleteAfterCompletion": "false",
                "cdi.kubevirt.io/storage.bind.immediate.requested": "true",
                MARK_CSI_SIZE: str(size),
                MARK_CSI_SOURCE: source_name(source),
                **({_ADOPTS: "true"} if adopts else {}),
            },
        },
        "spec": {"source": {BLANK: {}} if adopts else dict(source), "storage": storage},
    }


def claim(settings: Settings, handle: str, backing: Backing, source: Mapping[str, Any]) -> Object:
    """The claim of a volume, for storage that can do what is asked without anybody's help."""
    spec: Object = {
        "storageClassName": backing.storage_class,
        "accessModes": list(backing.access_modes),
        "volumeMode": BLOCK if backing.block else "Filesystem",
        "resources": {"requests": {"storage": str(backing.size)}},
    }
    if "snapshot" in source:
        group = "snapshot.storage.k8s.io"
        spec["dataSource"] = {"apiGroup": group, "kind": "VolumeSnapshot", "name": source["snapshot"]["name"]}
    elif "pvc" in source:
        spec["dataSource"] = {"kind": "PersistentVolumeClaim", "name": source["pvc"]["name"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": handle,
            "namespace": settings.namespace,
            "labels": marks(settings, VOLUME),
            "annotations": {_READY_FOR: handle},
        },
        "spec": spec,
    }


def source_name(source: Mapping[str, Any]) -> str:
    """How a source is remembered: `blank`, `snapshot/<handle>` or `volume/<handle>`."""
    if "snapshot" in source:
        return f"snapshot/{source['snapshot']['name']}"
    if "pvc" in source:
        return f"volume/{source['pvc']['name']}"
    return BLANK


def volume_snapshot(
    settings: Settings, handle: str, volume: str, size: int, snapshot_class: str, backing: Backing
) -> Object:
    spec: Object = {"source": {"persistentVolumeClaimName": volume}}
    if snapshot_class:
        spec["volumeSnapshotClassName"] = snapshot_class
    return {
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshot",
        "metadata": {
            "name": handle,
            "namespace": settings.namespace,
            "labels": marks(settings, SNAPSHOT),
            "annotations": {MARK_CSI_SIZE: str(size), MARK_CSI_BACKING: backing.text()},
        },
        "spec": spec,
    }


def size_of(obj: Mapping[str, Any]) -> int:
    """Bytes the guest sees."""
    return int(annotations_of(obj).get(MARK_CSI_SIZE) or 0)


def published_to(obj: Mapping[str, Any]) -> tuple[str, ...]:
    """Machines that were given this volume and have not been seen to let it go."""
    return tuple(name for name in annotations_of(obj).get(MARK_CSI_PUBLISHED, "").split(",") if name)


def shared(volume: Mapping[str, Any]) -> bool:
    """Whether it was made for several machines at the same time."""
    return READ_WRITE_MANY in (at(volume, "spec.storage.accessModes") or ())


def failure(volume: Mapping[str, Any]) -> str:
    """Why a DataVolume does not get ready, in CDI's words."""
    for condition in at(volume, "status.conditions") or ():
        text = str(condition.get("message") or "")
        if text and condition.get("type") in ("Running", "Bound") and condition.get("status") == "False":
            return text
    return str(at(volume, "status.phase") or "not begun")
