"""Which classes a guest gets, and what its storage driver may use for them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.paths import annotations_of, at
from hcp.csi.kubevirt.settings import InfraClass, Settings, SnapshotClass

Object = Mapping[str, Any]
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
DEFAULT_SNAPSHOT_CLASS = "snapshot.storage.kubernetes.io/is-default-class"
# How the guest's classes are called when nobody maps any.
GUEST_DEFAULT = "kubevirt-csi-infra-default"
GUEST_SNAPSHOT_DEFAULT = "kubevirt-csi-snapshot"
# In the release; without the first two there are no volumes.
PROVISIONER, RESIZER = "csi-external-provisioner", "csi-external-resizer"
SNAPSHOTTER, SNAPSHOT_CONTROLLER = "csi-external-snapshotter", "csi-snapshot-controller"
DRIVER_IMAGE = "kubevirt-csi-driver"
NEEDED = (PROVISIONER, RESIZER)
FOR_SNAPSHOTS = (SNAPSHOTTER, SNAPSHOT_CONTROLLER)


@dataclass(frozen=True)
class InfraKnown:
    """What the infra cluster says about its storage, where we may look."""

    classes: tuple[Object, ...] = ()
    profiles: tuple[Object, ...] = ()
    snapshot_classes: tuple[Object, ...] = ()


@dataclass(frozen=True, slots=True)
class GuestClass:
    name: str
    # "": the infra cluster's default, whichever it is.
    infra: str = ""
    default: bool = False
    expands: bool = True


@dataclass(frozen=True)
class Plan:
    """Everything storage is made of; None in its place means that the cluster wants none."""

    settings: Settings
    classes: tuple[GuestClass, ...]
    snapshot_classes: tuple[GuestClass, ...]
    # What the owner of the HostedCluster or of the infra cluster has to do.
    problems: tuple[str, ...] = ()


def wanted(spec: Mapping[str, Any]) -> bool:
    """Whether this cluster shall have volumes of its infra cluster."""
    platform = spec.get("platform") or {}
    return platform.get("type") == "KubeVirt" and at(platform, "kubevirt.storageDriver.type") != "None"


def asked_for(spec: Mapping[str, Any]) -> bool:
    """Whether somebody has said so, instead of nothing."""
    return wanted(spec) and bool(at(spec, "platform.kubevirt.storageDriver"))


def plan(spec: Mapping[str, Any], namespace: str, known: InfraKnown | None) -> Plan:
    """`known` is None where nobody lets us look: then what is asked for is believed to be there."""
    driver = at(spec, "platform.kubevirt.storageDriver") or {}
    infra_id = str(spec.get("infraID") or "")
    if driver.get("type") == "Manual":
        return _manual(driver.get("manual") or {}, namespace, infra_id, known)
    return _default(namespace, infra_id, known)


def _default(namespace: str, infra_id: str, known: InfraKnown | None) -> Plan:
    chosen = default_class(known.classes) if known is not None else None
    if known is not None and chosen is None:
        problem = "the infra cluster has no default StorageClass; mark one as default"
        return Plan(Settings(namespace, infra_id), (), (), (problem,))
    name = str(chosen["metadata"]["name"]) if chosen else ""
    settings = Settings(namespace, infra_id, _infra_class(name, "", known))
    classes = (GuestClass(GUEST_DEFAULT, "", default=True, expands=_expands(name, known)),)
    snapshots: tuple[GuestClass, ...] = ()
    if known is None or _default_snapshot_class(known, chosen):
        snapshots = (GuestClass(GUEST_SNAPSHOT_DEFAULT, "", default=True),)
    return Plan(settings, classes, snapshots)


def _manual(manual: Mapping[str, Any], namespace: str, infra_id: str, known: InfraKnown | None) -> Plan:
    mapped = manual.get("storageClassMapping") or []
    snapshots = manual.get("volumeSnapshotClassMapping") or []
    infra = {
        one["infraStorageClassName"]: _infra_class(one["infraStorageClassName"], one.get("group") or "", known)
        for one in mapped
    }
    infra_snapshots = {
        one["infraVolumeSnapshotClassName"]: SnapshotClass(one["infraVolumeSnapshotClassName"], one.get("group") or "")
        for one in snapshots
    }
    chosen = default_class(known.classes) if known is not None else None
    default = str(chosen["metadata"]["name"]) if chosen else ""
    only = len(mapped) == 1
    classes = tuple(
        GuestClass(
            one["guestStorageClassName"],
            one["infraStorageClassName"],
            default=only or one["infraStorageClassName"] == default,
            expands=_expands(one["infraStorageClassName"], known),
        )
        for one in _distinct(mapped, "guestStorageClassName")
    )
    cut = tuple(
        GuestClass(
            one["guestVolumeSnapshotClassName"], one["infraVolumeSnapshotClassName"], default=len(snapshots) == 1
        )
        for one in _distinct(snapshots, "guestVolumeSnapshotClassName")
    )
    problems = _missing("StorageClass", infra, None if known is None else known.classes)
    problems += _missing("VolumeSnapshotClass", infra_snapshots, None if known is None else known.snapshot_classes)
    settings = Settings(namespace, infra_id, None, infra, infra_snapshots)
    return Plan(settings, classes, cut, tuple(problems))


def _distinct(mappings: Iterable[Mapping[str, Any]], key: str) -> list[Mapping[str, Any]]:
    """The first of those that would give the guest two classes of one name."""
    found: dict[str, Mapping[str, Any]] = {}
    for one in mappings:
        found.setdefault(one[key], one)
    return list(found.values())


def _missing(kind: str, wanted_names: Iterable[str], there: Iterable[Object] | None) -> list[str]:
    if there is None:
        return []
    names = {one["metadata"]["name"] for one in there}
    return [f"the infra cluster has no {kind} {name}" for name in sorted(wanted_names) if name not in names]


def default_class(classes: Iterable[Object]) -> Object | None:
    """Of several the newest, as Kubernetes chooses."""
    marked = [one for one in classes if annotations_of(one).get(DEFAULT_CLASS) == "true"]
    return max(marked, key=lambda one: str(one["metadata"].get("creationTimestamp") or ""), default=None)


def _default_snapshot_class(known: InfraKnown, chosen: Object | None) -> bool:
    """Snapshots without a named class need a default one of the very driver that made the volume."""
    provisioner = chosen.get("provisioner") if chosen else None
    return any(
        one.get("driver") == provisioner and annotations_of(one).get(DEFAULT_SNAPSHOT_CLASS) == "true"
        for one in known.snapshot_classes
    )


def _expands(name: str, known: InfraKnown | None) -> bool:
    found = _named(name, known.classes if known else ())
    return found is None or found.get("allowVolumeExpansion") is True


def _infra_class(name: str, group: str, known: InfraKnown | None) -> InfraClass:
    """What it can do, as the class and CDI's profile of it have it."""
    found = _named(name, known.classes if known else ())
    profile = _named(name, known.profiles if known else ())
    if profile is None:
        return InfraClass(name, group)
    sets = at(profile, "status.claimPropertySets") or ()
    modes = [tuple(one.get("accessModes") or ()) for one in sets if one.get("volumeMode") == "Block"]
    shared = next((one for one in modes if "ReadWriteMany" in one), None)
    return InfraClass(
        name,
        group,
        shared is not None,
        direct=found is not None and found.get("volumeBindingMode") != "WaitForFirstConsumer",
        # A disk that several machines can have may move with a running machine.
        block=shared or next(iter(modes), ()),
        clones=at(profile, "status.cloneStrategy") == "csi-clone",
    )


def _named(name: str, objects: Iterable[Object]) -> Object | None:
    return next((one for one in objects if one["metadata"]["name"] == name), None)
