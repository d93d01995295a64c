"""What a pass knows about the catalogs of its cluster's operators."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hcp.api.paths import at
from hcp.controlplane.catalogs import PORT
from hcp.controlplane.params import Params
from hcp.guest.catalogs import NEEDED, OLM_IMAGE, OPM_IMAGE, Catalog, GuestCatalogs, catalogs
from hcp.hostedcluster.scope import Scope
from hcp.kube.resources import SERVICES

_HUB = "configuration.operatorhub"


def inside(scope: Scope) -> GuestCatalogs | None:
    """None where the release has nothing that reads catalogs: then nothing of it exists."""
    if scope.release is None or not _readable(scope):
        return None
    images = scope.params.images
    return GuestCatalogs(_sources(scope), images[OLM_IMAGE], images[OPM_IMAGE], scope.release.olm_definitions)


def outside(scope: Scope) -> tuple[Catalog, ...]:
    """Those that run beside the control plane."""
    if not _readable(scope) or not _asked_outside(scope.spec) or obstacle(scope.params, scope.pools):
        return ()
    return _named(scope)


def acted_on_in_part(scope: Scope) -> list[str]:
    """Only to who has catalogs: everybody has the field, by its default."""
    if not _asked_outside(scope.spec) or not _named(scope):
        return []
    why = obstacle(scope.params, scope.pools)
    return [f"olmCatalogPlacement management: catalogs run inside the cluster, as with guest: {why}"] if why else []


def obstacle(p: Params, pools: Iterable[Mapping[str, Any]]) -> str:
    """Why machines of this cluster cannot reach a Service beside its control plane; empty when they can."""
    if not p.vms_inside:
        return "its machines do not run beside its control plane, and reach only what is published"
    for text in (*p.cluster_networks, *p.service_networks):
        own = ipaddress.ip_network(text, strict=False)
        for hidden in map(ipaddress.ip_network, p.hidden_networks):
            if own.version == hidden.version and own.overlaps(hidden):
                return f"its network {text} covers {hidden} of the management cluster"
    for pool in pools:
        if at(pool, "spec.platform.kubevirt.attachDefaultNetwork") is False:
            return f"the machines of NodePool {pool['metadata']['name']} are not attached to the pod network"
    return ""


def address(service: Mapping[str, Any] | None) -> str:
    """Where the Service of a catalog answers; empty while it has no address."""
    found = str(at(service, "spec.clusterIP") or "")
    return "" if not found else f"[{found}]:{PORT}" if ":" in found else f"{found}:{PORT}"


def _sources(scope: Scope) -> tuple[Catalog, ...]:
    beside = outside(scope)
    if not beside:
        return _named(scope)
    placed = (
        replace(one, address=address(scope.cache.get(SERVICES, one.default.name, scope.namespace))) for one in beside
    )
    return tuple(one for one in placed if one.address)


def _readable(scope: Scope) -> bool:
    release, images = scope.release, scope.params.images
    return release is not None and bool(release.olm_definitions) and all(name in images for name in NEEDED)


def _named(scope: Scope) -> tuple[Catalog, ...]:
    return catalogs(scope.params.annotations, at(scope.spec, _HUB))


def _asked_outside(spec: Mapping[str, Any]) -> bool:
    return bool(spec.get("olmCatalogPlacement") != "guest")
