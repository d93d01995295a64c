"""The objects of the infra cluster behind volumes and snapshots, and whose they are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api.names import LABEL_CSI_ROLE, LABEL_INFRA_ID, MARK_CSI_PUBLISHED, MARK_CSI_SIZE, MARK_CSI_SOURCE
from hcp.api.paths import annotations_of, at, labels_of
from hcp.csi.kubevirt.access import BLOCK, READ_WRITE_MANY, Wish
from hcp.csi.kubevirt.settings import Settings

Object = dict[str, Any]
VOLUME, SNAPSHOT = "volume", "snapshot"
BLANK = "blank"


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
    settings: Settings, handle: str, wish: Wish, size: int, infra_class: str, source: Mapping[str, Any]
) -> Object:
    """An empty, cloned or restored volume. Kind and access are left to CDI, which knows the class, unless several
    machines shall share it."""
    storage: Object = {"resources": {"requests": {"storage": str(size)}}}
    if infra_class:
        storage["storageClassName"] = infra_class
    if wish.shared:
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
            },
        },
        "spec": {"source": dict(source), "storage": storage},
    }


def source_name(source: Mapping[str, Any]) -> str:
    """How a source is remembered: `blank`, `snapshot/<handle>` or `volume/<handle>`."""
    if "snapshot" in source:
        return f"snapshot/{source['snapshot']['name']}"
    if "pvc" in source:
        return f"volume/{source['pvc']['name']}"
    return BLANK


def volume_snapshot(settings: Settings, handle: str, volume: str, size: int, snapshot_class: str) -> Object:
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
            "annotations": {MARK_CSI_SIZE: str(size)},
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
