"""What the controller may do for one hosted cluster: written by the operator, read by the driver. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Parameters of classes in the guest.
CLASS_PARAMETER = "infraStorageClassName"
SNAPSHOT_CLASS_PARAMETER = "infraSnapshotClassName"
BUS_PARAMETER = "bus"
BUSES = ("scsi", "virtio")
DEFAULT_BUS = "scsi"


@dataclass(frozen=True, slots=True)
class InfraClass:
    """A StorageClass of the infra cluster that the guest may use."""

    name: str
    group: str = ""
    # Whether several machines can have one of its block volumes at the same time; None where nobody may look.
    shared_block: bool | None = None
    # Claims may be made by us, without asking CDI: it is known, and binds at once.
    direct: bool = False
    # How its block volumes may be accessed; nothing where it has none.
    block: tuple[str, ...] = ()
    # Its driver copies volumes by itself.
    clones: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotClass:
    """A VolumeSnapshotClass of the infra cluster that the guest may use."""

    name: str
    group: str = ""


@dataclass(frozen=True)
class Settings:
    """One hosted cluster."""

    namespace: str
    infra_id: str
    # The infra cluster's default classes may be used, by not naming any; what is known of the class that is it now.
    default: InfraClass | None = None
    classes: Mapping[str, InfraClass] = field(default_factory=dict)
    snapshot_classes: Mapping[str, SnapshotClass] = field(default_factory=dict)

    def text(self) -> str:
        """As it lies in the ConfigMap that the driver mounts; equal settings give equal text."""
        value: dict[str, Any] = {
            "namespace": self.namespace,
            "infraID": self.infra_id,
            "classes": [_class(self.classes[name]) for name in sorted(self.classes)],
            "snapshotClasses": [
                {"name": one.name, "group": one.group} for _, one in sorted(self.snapshot_classes.items())
            ],
        }
        if self.default is not None:
            value["default"] = _class(self.default)
        return json.dumps(value, indent=1, sort_keys=True) + "\n"


def parse(text: str) -> Settings:
    value = json.loads(text)
    default = value.get("default")
    classes = [_read_class(one) for one in value.get("classes") or ()]
    snapshots = [SnapshotClass(one["name"], one.get("group", "")) for one in value.get("snapshotClasses") or ()]
    return Settings(
        namespace=value["namespace"],
        infra_id=value["infraID"],
        default=None if default is None else _read_class(default),
        classes={one.name: one for one in classes},
        snapshot_classes={one.name: one for one in snapshots},
    )


def _class(one: InfraClass) -> dict[str, Any]:
    return {
        "name": one.name,
        "group": one.group,
        "sharedBlock": one.shared_block,
        "direct": one.direct,
        "block": list(one.block),
        "clones": one.clones,
    }


def _read_class(value: Mapping[str, Any]) -> InfraClass:
    return InfraClass(
        value["name"],
        value.get("group", ""),
        value.get("sharedBlock"),
        bool(value.get("direct")),
        tuple(value.get("block") or ()),
        bool(value.get("clones")),
    )
