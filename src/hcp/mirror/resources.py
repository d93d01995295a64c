"""What a cluster has to be told after mirroring: objects that lead from the sources to the target. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any

from hcp.mirror.plan import GRAPH, RELEASES, CatalogTarget, Item, Kind, Plan
from hcp.oci.reference import Reference
from hcp.publish.target import Target

MARKETPLACE = "openshift-marketplace"
_NAMES: dict[Kind, str] = {"release": "release", "operator": "operator", "additional": "generic", "helm": "helm"}


def mirror_sets(plan: Plan, target: Target) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """ImageDigestMirrorSets and ImageTagMirrorSets: one of each per kind of content."""
    digests, tags = [], []
    for kind, name in _NAMES.items():
        items = [item for item in plan.items if item.kind == kind and item.source and not item.silent]
        by_digest = [item for item in items if Reference.parse(item.source).digest]
        by_tag = [item for item in items if not Reference.parse(item.source).digest]
        if kind == "release":  # a release is used by digest, however it was named here
            by_digest = items
        if by_digest:
            entries = _entries(by_digest, target)
            digests.append(_object("ImageDigestMirrorSet", f"idms-{name}-0", {"imageDigestMirrors": entries}))
        if by_tag:
            entries = _entries(by_tag, target)
            tags.append(_object("ImageTagMirrorSet", f"itms-{name}-0", {"imageTagMirrors": entries}))
    return digests, tags


def content_source_policies(plan: Plan, target: Target) -> list[dict[str, Any]]:
    """The older form of digest mirror sets, which some clusters still take."""
    found = []
    for one in mirror_sets(plan, target)[0]:
        name = one["metadata"]["name"].removeprefix("idms-")
        made = _object("ImageContentSourcePolicy", name, {"repositoryDigestMirrors": one["spec"]["imageDigestMirrors"]})
        found.append(made | {"apiVersion": "operator.openshift.io/v1alpha1"})
    return found


def catalog_name(catalog: CatalogTarget) -> str:
    """`redhat-operator-index:v4.17` → `redhat-operator-index-v4-17`."""
    last = f"{catalog.repository.rpartition('/')[2]}-{catalog.tag[:20]}".lower()
    return re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:60].strip("-")


def catalog_source(catalog: CatalogTarget, target: Target) -> dict[str, Any]:
    given = catalog.template or {}
    metadata = {"name": f"cs-{catalog_name(catalog)}", "namespace": MARKETPLACE, **(given.get("metadata") or {})}
    spec = {"sourceType": "grpc", **(given.get("spec") or {}), "image": _place(catalog, target)}
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "CatalogSource",
        "metadata": metadata,
        "spec": spec,
    }


def cluster_catalog(catalog: CatalogTarget, target: Target) -> dict[str, Any]:
    return {
        "apiVersion": "olm.operatorframework.io/v1",
        "kind": "ClusterCatalog",
        "metadata": {"name": f"cc-{catalog_name(catalog)}"},
        "spec": {"priority": 0, "source": {"type": "Image", "image": {"ref": _place(catalog, target)}}},
    }


def update_service(plan: Plan, target: Target) -> dict[str, Any] | None:
    graph = next((item for item in plan.items if item.repository == GRAPH), None)
    if graph is None:
        return None
    return {
        "apiVersion": "updateservice.operator.openshift.io/v1",
        "kind": "UpdateService",
        "metadata": {"name": "update-service-oc-mirror"},
        "spec": {
            "graphDataImage": target.reference(GRAPH, graph.digest),
            "releases": f"{target.registry}/{target.repository(RELEASES)}",
            "replicas": 2,
        },
    }


def signatures(found: Mapping[str, str]) -> dict[str, Any] | None:
    """A ConfigMap with detached signatures of releases (base64), as clusters look for them."""
    if not found:
        return None
    data = {f"{digest.replace(':', '-')}-1": text for digest, text in sorted(found.items())}
    for text in data.values():
        base64.b64decode(text, validate=True)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "mirrored-release-signatures",
            "namespace": "openshift-config-managed",
            "labels": {"release.openshift.io/verification-signatures": ""},
        },
        "binaryData": data,
    }


def _entries(items: Iterable[Item], target: Target) -> list[dict[str, Any]]:
    found: dict[str, dict[str, None]] = {}
    for item in items:
        source = Reference.parse(item.source).name
        place = f"{target.registry}/{target.repository(item.repository)}"
        if source != place:
            found.setdefault(source, {})[place] = None
    return [{"source": source, "mirrors": sorted(found[source])} for source in sorted(found)]


def _place(catalog: CatalogTarget, target: Target) -> str:
    return f"{target.registry}/{target.repository(catalog.repository)}:{catalog.tag}"


def _object(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}
