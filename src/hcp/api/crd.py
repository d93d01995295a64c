"""Put a schema into a CustomResourceDefinition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api.schema import Rule, Schema, string


def column(name: str, path: str, doc: str = "", *, kind: str = "string", wide: bool = False) -> dict[str, Any]:
    """One column of ``kubectl get``; ``wide`` ones only show with ``-o wide``."""
    found: dict[str, Any] = {"name": name, "type": kind, "jsonPath": path}
    if doc:
        found["description"] = doc
    if wide:
        found["priority"] = 1
    return found


def condition_column(name: str, condition: str, field: str = "status", doc: str = "") -> dict[str, Any]:
    return column(name, f'.status.conditions[?(@.type=="{condition}")].{field}', doc)


def crd(
    *,
    group: str,
    version: str,
    kind: str,
    plural: str,
    short_names: Iterable[str] = (),
    categories: Iterable[str] = (),
    doc: str,
    spec: Schema,
    status: Schema | None = None,
    spec_required: bool = True,
    rules: Iterable[Rule] = (),
    columns: Iterable[dict[str, Any]] = (),
    scale: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A namespaced CRD with one served and stored version."""
    properties: dict[str, Any] = {
        "apiVersion": string("The versioned schema of this object."),
        "kind": string("The kind of this object."),
        "metadata": {"type": "object"},
        "spec": spec,
    }
    subresources: dict[str, Any] = {}
    if status is not None:
        properties["status"] = status
        subresources["status"] = {}
    if scale:
        subresources["scale"] = dict(scale)
    schema: dict[str, Any] = {"type": "object", "description": doc, "properties": properties}
    if spec_required:
        schema["required"] = ["spec"]
    found_rules = list(rules)
    if found_rules:
        schema["x-kubernetes-validations"] = found_rules
    names: dict[str, Any] = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    shorts = list(short_names)
    if shorts:
        names["shortNames"] = shorts
    groups = list(categories)
    if groups:
        names["categories"] = groups
    metadata: dict[str, Any] = {"name": f"{plural}.{group}"}
    if labels:
        metadata["labels"] = dict(labels)
    served: dict[str, Any] = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    if subresources:
        served["subresources"] = subresources
    found_columns = list(columns)
    if found_columns:
        served["additionalPrinterColumns"] = found_columns
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [served]},
    }
