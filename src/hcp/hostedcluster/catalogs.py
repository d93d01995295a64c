"""What a pass knows about the catalogs of its cluster's operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api.paths import at
from hcp.guest.catalogs import NEEDED, OLM_IMAGE, OPM_IMAGE, GuestCatalogs, catalogs
from hcp.hostedcluster.scope import Scope

_HUB = "configuration.operatorhub"


def inside(scope: Scope) -> GuestCatalogs | None:
    """None where the release has nothing that reads catalogs: then nothing of it exists."""
    release, images = scope.release, scope.params.images
    if release is None or not release.olm_definitions or any(name not in images for name in NEEDED):
        return None
    return GuestCatalogs(
        catalogs(scope.params.annotations, at(scope.spec, _HUB)),
        images[OLM_IMAGE],
        images[OPM_IMAGE],
        release.olm_definitions,
    )


def acted_on_in_part(spec: Mapping[str, Any], annotations: Mapping[str, str]) -> list[str]:
    """Only to who has catalogs: everybody has the field, by its default."""
    if spec.get("olmCatalogPlacement") == "guest" or not catalogs(annotations, at(spec, _HUB)):
        return []
    return ["olmCatalogPlacement management: catalogs run inside the cluster, as with guest"]
