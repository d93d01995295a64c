"""A small operator as catalogs have them: its version's document, its bundle image and the catalog that offers it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import yaml

from hcp.oci.writer import ImageConfig, Layer, Layout, write_image

Object = dict[str, Any]
PACKAGE, KIND, GROUP = "hello-operator", "Hello", "example.com"
CONFIGS = "operators.operatorframework.io.index.configs.v1"


def definition() -> Object:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    names = {"kind": KIND, "plural": "hellos", "singular": "hello", "listKind": "HelloList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"hellos.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def cluster_service_version(version: str, image: str) -> Object:
    """Its operator only waits: what is shown is how it gets there."""
    labels = {"name": PACKAGE}
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 1001,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    pod = {
        "serviceAccountName": PACKAGE,
        "containers": [{"name": PACKAGE, "image": image, "securityContext": security}],
    }
    deployment = {
        "name": PACKAGE,
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    rules = [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}]
    owned = {"name": f"hellos.{GROUP}", "version": "v1", "kind": KIND, "displayName": KIND, "description": KIND}
    modes = {"OwnNamespace": True, "SingleNamespace": True, "MultiNamespace": False, "AllNamespaces": True}
    spec = {
        "displayName": "Hello Operator",
        "description": "Says hello",
        "provider": {"name": "hcp"},
        "version": version,
        "installModes": [{"type": mode, "supported": supported} for mode, supported in modes.items()],
        "install": {
            "strategy": "deployment",
            "spec": {
                "clusterPermissions": [{"serviceAccountName": PACKAGE, "rules": rules}],
                "deployments": [deployment],
            },
        },
        "customresourcedefinitions": {"owned": [owned]},
    }
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": f"{PACKAGE}.v{version}", "namespace": "placeholder"},
        "spec": spec,
    }


def bundle_image(folder: Path, version: str, image: str) -> Path:
    """As `opm` and operator-sdk make them: manifests and what they are, on nothing."""
    layer = Layer("bundle")
    layer.file("manifests/csv.yaml", yaml.safe_dump(cluster_service_version(version, image)))
    layer.file("manifests/crd.yaml", yaml.safe_dump(definition()))
    prefix = "operators.operatorframework.io.bundle"
    said = {
        f"{prefix}.mediatype.v1": "registry+v1",
        f"{prefix}.manifests.v1": "manifests/",
        f"{prefix}.metadata.v1": "metadata/",
        f"{prefix}.package.v1": PACKAGE,
        f"{prefix}.channels.v1": "stable",
        f"{prefix}.channel.default.v1": "stable",
    }
    layer.file("metadata/annotations.yaml", yaml.safe_dump({"annotations": said}))
    write_image(folder, "bundle", [layer], ImageConfig(labels=said))
    return folder


def documents(versions: dict[str, str], operator: str) -> list[Object]:
    """A package with these versions, each with its bundle's image, or with its objects in it where there is none."""
    entries: list[Object] = []
    found: list[Object] = [{"schema": "olm.package", "name": PACKAGE, "defaultChannel": "stable"}]
    for version, image in versions.items():
        name = f"{PACKAGE}.v{version}"
        entries.append({"name": name, **({"replaces": entries[-1]["name"]} if entries else {})})
        owned = {"group": GROUP, "version": "v1", "kind": KIND}
        properties: list[Object] = [
            {"type": "olm.package", "value": {"packageName": PACKAGE, "version": version}},
            {"type": "olm.gvk", "value": owned},
        ]
        for one in (cluster_service_version(version, operator), definition()):
            data = base64.b64encode(json.dumps(one).encode()).decode()
            properties.append({"type": "olm.bundle.object", "value": {"data": data}})
        related = [{"name": "operator", "image": operator}] if operator else []
        bundle = {"schema": "olm.bundle", "name": name, "package": PACKAGE, "properties": properties}
        found.append({**bundle, **({"image": image, "relatedImages": related} if image else {})})
    found.append({"schema": "olm.channel", "name": "stable", "package": PACKAGE, "entries": entries})
    return found


def catalog_image(folder: Path, listed: list[Object], base: Layout | None) -> Path:
    """On an image with opm, as `opm generate dockerfile` does it; without one it can only be read."""
    layer = Layer("catalog")
    layer.file(f"configs/{PACKAGE}/catalog.json", "\n".join(json.dumps(one) for one in listed))
    config = ImageConfig(
        entrypoint=("/bin/opm",),
        command=("serve", "/configs", "--cache-dir=/tmp/cache"),
        labels={CONFIGS: "/configs"},
    )
    write_image(folder, "catalog", [layer], config, base=base)
    return folder
