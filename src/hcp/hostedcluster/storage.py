"""What a pass knows about the storage of its cluster: for the guest, the controller beside it and the status."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hcp.api.paths import at
from hcp.controlplane import storage_plan
from hcp.controlplane.storage_plan import InfraKnown, Plan
from hcp.guest.storage import GuestStorage
from hcp.hostedcluster.scope import Scope
from hcp.kube.resources import STORAGECLASSES, STORAGEPROFILES, VOLUMESNAPSHOTCLASSES


@dataclass(frozen=True)
class Storage:
    plan: Plan
    driver_image: str
    external: bool


def missing_images(scope: Scope) -> list[str]:
    """What the release lacks for volumes; without an image of the driver there are none either."""
    found = [name for name in storage_plan.NEEDED if name not in scope.params.images]
    return found + ([] if _driver_image(scope) else [storage_plan.DRIVER_IMAGE])


def _driver_image(scope: Scope) -> str:
    return scope.params.images.get(storage_plan.DRIVER_IMAGE) or scope.ctx.own_image


def of(scope: Scope) -> Storage | None:
    """None in a cluster that wants no storage, or whose release has none: then nothing of it exists."""
    if not storage_plan.wanted(scope.spec) or scope.release is None or missing_images(scope):
        return None
    credentials = at(scope.spec, "platform.kubevirt.credentials") or {}
    namespace = str(credentials.get("infraNamespace") or scope.namespace)
    plan = storage_plan.plan(scope.spec, namespace, None if credentials else known(scope))
    cuts = scope.release.snapshot_definitions and all(n in scope.params.images for n in storage_plan.FOR_SNAPSHOTS)
    if plan.snapshot_classes and not cuts:
        plan = replace(plan, snapshot_classes=())
    return Storage(plan, _driver_image(scope), bool(credentials))


def known(scope: Scope) -> InfraKnown:
    """Of the management cluster, from what is followed anyway."""
    return InfraKnown(
        tuple(scope.cache.list(STORAGECLASSES)),
        tuple(scope.cache.list(STORAGEPROFILES)),
        tuple(scope.cache.list(VOLUMESNAPSHOTCLASSES)),
    )


def inside(scope: Scope) -> GuestStorage | None:
    """What the guest's own parts need to know."""
    found = of(scope)
    if found is None or scope.release is None:
        return None
    definitions = scope.release.snapshot_definitions if found.plan.snapshot_classes else ()
    return GuestStorage(found.plan, found.driver_image, tuple(definitions))
