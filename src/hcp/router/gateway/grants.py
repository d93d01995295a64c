"""Whether one namespace lets another name its objects. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.paths import at, labels_of

GROUP = "gateway.networking.k8s.io"
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """Of which kind and namespace somebody is who names an object, and that object."""

    kind: str
    namespace: str
    to_group: str
    to_kind: str
    to_namespace: str
    to_name: str


def permitted(wanted: Reference, grants: Iterable[Object]) -> bool:
    """Inside a namespace always; from another one when a ReferenceGrant beside the object says so."""
    if wanted.namespace == wanted.to_namespace:
        return True
    return any(
        grant["metadata"].get("namespace") == wanted.to_namespace
        and any(_from(one, wanted) for one in at(grant, "spec.from") or ())
        and any(_to(one, wanted) for one in at(grant, "spec.to") or ())
        for grant in grants
    )


def _from(one: Object, wanted: Reference) -> bool:
    return (one.get("group"), one.get("kind"), one.get("namespace")) == (GROUP, wanted.kind, wanted.namespace)


def _to(one: Object, wanted: Reference) -> bool:
    named = one.get("name") in (None, "", wanted.to_name)
    return named and ((one.get("group") or ""), one.get("kind")) == (wanted.to_group, wanted.to_kind)


def selects(selector: Object, namespace: Object | None) -> bool:
    """Whether a selector of labels takes a namespace; one that cannot be read takes none."""
    if namespace is None:
        return False
    labels = labels_of(namespace)
    if any(labels.get(name) != value for name, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_expression(one, labels) for one in selector.get("matchExpressions") or ())


def _expression(one: Object, labels: Mapping[str, str]) -> bool:
    key, values = str(one.get("key")), one.get("values") or ()
    match one.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
