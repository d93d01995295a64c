"""Definitions of other projects' kinds: of Cluster API, KubeVirt, CDI and OpenShift the real ones, else open ones."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from hcp import payload
from hcp.kube import Resource
from hcp.kube import resources as r
from hcp.router.crd import route_crd

Object = dict[str, Any]
COMPONENTS = (
    *("cluster-api", "cluster-api-kubevirt", "kubevirt-definitions", "cdi-definitions"),
    *("openshift-definitions", "mirror-definitions"),
)
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@cache
def _real() -> dict[str, Object]:
    """By name. Where each comes from: `hcp payload list`."""
    files = [
        path for folder in payload.ensure(COMPONENTS).values() for path in (folder / "manifests/crds").glob("*.yaml")
    ]
    found = [yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) for path in files]
    return {crd["metadata"]["name"]: crd for crd in (*found, route_crd())}


def real(*resources: Resource) -> list[Object]:
    """The definitions that a cluster with these projects has."""
    return [_real()[resource.full_name] for resource in resources]


def metallb() -> list[Object]:
    """MetalLB's own, without the webhook that translates between versions: nobody would answer it."""
    component = "metallb-manifests"
    text = (payload.ensure([component])[component] / "manifests/metallb-native.yaml").read_text()
    found = [one for one in yaml.safe_load_all(text) if one["kind"] == "CustomResourceDefinition"]
    for one in found:
        one["spec"].pop("conversion", None)
    return found


def open_crd(resource: Resource) -> Object:
    """A definition that takes anything, for kinds whose projects are not part of a test."""
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}},
        "subresources": {"status": {}},
    }
    names = {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.full_name},
        "spec": {
            "group": resource.group,
            "names": {**names, "listKind": f"{resource.kind}List"},
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [version],
        },
    }


CLUSTER_API = (
    r.CAPI_CLUSTERS,
    r.KUBEVIRTCLUSTERS,
    r.MACHINES,
    r.MACHINESETS,
    r.MACHINEDEPLOYMENTS,
    r.MACHINEHEALTHCHECKS,
    r.KUBEVIRTMACHINES,
    r.KUBEVIRTMACHINETEMPLATES,
)
VIRTUALIZATION = (r.VIRTUALMACHINES, r.VMIS, r.VMI_MIGRATIONS, r.DATAVOLUMES)
