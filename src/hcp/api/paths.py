"""The one way to read deep fields that may be missing: ``at(pool, "spec.platform.kubevirt.compute")``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def at(obj: Mapping[str, Any] | None, path: str, default: Any = None) -> Any:
    """What lies there; ``default`` where any part of the way is missing, null or empty."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if value or value in (0, False) else default


def block(obj: Mapping[str, Any] | None, path: str) -> Mapping[str, Any]:
    """The object that lies there, empty where there is none."""
    value = at(obj, path)
    return value if isinstance(value, Mapping) else {}


def conditions_of(obj: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = at(obj, "status.conditions", [])
    return found


def annotations_of(obj: Mapping[str, Any] | None) -> Mapping[str, str]:
    """Of any object; keys have dots, so they are no paths."""
    return block(obj, "metadata.annotations")


def labels_of(obj: Mapping[str, Any] | None) -> Mapping[str, str]:
    return block(obj, "metadata.labels")
