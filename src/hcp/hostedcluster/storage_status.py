"""Whether the guest's volumes work, as a condition says it. Pure."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.guest.state import NOT_LOOKED_AT
from hcp.hostedcluster.observed import StorageState
from hcp.kubevirt.granted import short
from hcp.runtime.workloads import serving

Verdict = tuple[bool | str, str, str]


def verdict(seen: StorageState | None, before: Verdict = NOT_LOOKED_AT) -> Verdict | None:
    """None where there is nothing to tell: the cluster wants no storage, or was not looked at.

    What was said `before` stays while nobody has looked inside: "works" is never a guess.
    """
    if seen is None:
        return None
    if seen.plan is None:
        return (
            False,
            c.MISSING_RELEASE_IMAGES,
            f"The release has no storage, it lacks: {', '.join(seen.missing)}. Use a release that has them",
        )
    if not seen.plan.classes:
        return False, c.NO_STORAGE_CLASS, "; ".join(seen.plan.problems) or "No StorageClass is mapped"
    if seen.lacking:
        return (
            False,
            c.INFRA_RIGHTS_MISSING,
            f"The owner of the infra cluster has to grant in namespace {seen.plan.settings.namespace}: "
            f"{short(seen.lacking)} (hcp rbac external-infra prints the role). The rest of the cluster works",
        )
    if seen.plan.problems:
        return False, c.NO_STORAGE_CLASS, "; ".join([*seen.plan.problems, classes(seen)])
    if seen.controller is None:
        return "Unknown", c.NO_WORKER_NODES, "The storage driver starts with the first node"
    if not serving(seen.controller):
        return False, c.WAITING_FOR_AVAILABLE, "Waiting for Deployment kubevirt-csi-controller"
    if seen.waiting is None:
        return before
    if seen.waiting:
        return False, c.WAITING_FOR_AVAILABLE, f"Waiting for {', '.join(seen.waiting)} inside the cluster"
    return True, c.AS_EXPECTED, classes(seen)


def classes(seen: StorageState) -> str:
    """The classes in words, the default one first."""
    if seen.plan is None:
        return ""
    found = sorted(seen.plan.classes, key=lambda one: (not one.default, one.name))
    text = ", ".join(f"{one.name} (default)" if one.default else one.name for one in found)
    snapshots = ", ".join(one.name for one in seen.plan.snapshot_classes) or "none"
    return f"StorageClasses: {text}; VolumeSnapshotClasses: {snapshots}"
