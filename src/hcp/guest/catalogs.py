"""Which catalogs of operators a guest gets by its HostedCluster's annotations and configuration. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.oci.mirrors import override
from hcp.oci.reference import is_image
from hcp.release import overrides

Manifest = dict[str, Any]
# In the release; without both there are no catalogs.
OLM_IMAGE, OPM_IMAGE = "operator-lifecycle-manager", "operator-registry"
NEEDED = (OLM_IMAGE, OPM_IMAGE)


@dataclass(frozen=True)
class Default:
    """A source that OpenShift has by itself, and here has when its annotation names an image."""

    name: str
    annotation: str
    title: str
    publisher: str
    # Of two catalogs with the same package the higher one is taken.
    priority: int


DEFAULTS = (
    Default("certified-operators", names.ANNOTATION_CERTIFIED_CATALOG_IMAGE, "Certified Operators", "Red Hat", -200),
    Default("community-operators", names.ANNOTATION_COMMUNITY_CATALOG_IMAGE, "Community Operators", "Red Hat", -400),
    Default("redhat-marketplace", names.ANNOTATION_MARKETPLACE_CATALOG_IMAGE, "Red Hat Marketplace", "Red Hat", -300),
    Default("redhat-operators", names.ANNOTATION_REDHAT_CATALOG_IMAGE, "Red Hat Operators", "Red Hat", -100),
)


@dataclass(frozen=True)
class Catalog:
    default: Default
    image: str
    # Where it is served beside the control plane; empty: a pod in the guest serves it.
    address: str = ""


@dataclass(frozen=True)
class GuestCatalogs:
    """What is to be made, and of which images."""

    catalogs: tuple[Catalog, ...]
    olm_image: str
    opm_image: str
    definitions: tuple[Manifest, ...] = field(default=(), compare=False)
    # Whether somebody made a catalog in the guest.
    used: bool = False

    @property
    def running(self) -> bool:
        """Without any catalog nothing of this runs."""
        return self.used or bool(self.catalogs)


def catalogs(annotations: Mapping[str, str], hub: Mapping[str, Any] | None) -> tuple[Catalog, ...]:
    moves, _ = overrides.pairs(annotations.get(names.ANNOTATION_CATALOG_REGISTRY_OVERRIDES, ""))
    return tuple(
        Catalog(one, override(image, moves))
        for one in DEFAULTS
        if (image := annotations.get(one.annotation, "").strip()) and is_image(image) and not _is_off(one.name, hub)
    )


def problems(annotations: Mapping[str, str]) -> list[str]:
    """What of the annotations has no effect."""
    _, wrong = overrides.pairs(annotations.get(names.ANNOTATION_CATALOG_REGISTRY_OVERRIDES, ""))
    said = [f"annotation {names.ANNOTATION_CATALOG_REGISTRY_OVERRIDES}: {one!a} is not source=mirror" for one in wrong]
    for one in DEFAULTS:
        image = annotations.get(one.annotation, "").strip()
        if image and not is_image(image):
            said.append(f"annotation {one.annotation}: {image[:100]!a} is no image")
    return said


def unknown_sources(hub: Mapping[str, Any] | None) -> list[str]:
    """Sources that are turned off or on and are no default ones."""
    known = {one.name for one in DEFAULTS}
    return [f"configuration.operatorhub.sources {name[:100]!a}" for name, _ in _sources(hub) if name not in known]


def _is_off(name: str, hub: Mapping[str, Any] | None) -> bool:
    """What is said of one source goes before what is said of all."""
    return dict(_sources(hub)).get(name, bool(at(hub, "disableAllDefaultSources")))


def _sources(hub: Mapping[str, Any] | None) -> Iterable[tuple[str, bool]]:
    return [(str(one.get("name")), bool(one.get("disabled"))) for one in at(hub, "sources") or ()]
