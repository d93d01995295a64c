"""What there is: one row per component."""

from __future__ import annotations

from typing import NamedTuple

from hcp.payload.cleaning import disk_size, human_size
from hcp.payload.registry import Registry, default_registry
from hcp.payload.store import Store


class Row(NamedTuple):
    component: str
    version: str
    state: str
    """present, missing or damaged"""
    origin: str
    size: int
    path: str
    summary: str


def rows(registry: Registry | None = None, store: Store | None = None) -> list[Row]:
    registry, store = registry or default_registry(), store or Store()
    result = []
    for name in registry.names():
        component, key = registry.get(name), registry.key(name)
        path, damage = store.inspect(name, key)
        if path is None:
            state = "missing" if damage is None else f"damaged: {damage}"
            result.append(Row(name, component.version, state, "", 0, "", component.summary))
            continue
        origin = str(store.metadata(name, key).get("origin", ""))
        result.append(Row(name, component.version, "present", origin, disk_size(path), str(path), component.summary))
    return result


def table(found: list[Row]) -> str:
    head = ("COMPONENT", "VERSION", "STATE", "SIZE", "ORIGIN")
    cells = [head] + [
        (row.component, row.version, row.state, human_size(row.size) if row.size else "-", row.origin or "-")
        for row in found
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    total = sum(row.size for row in found)
    present = sum(row.state == "present" for row in found)
    return "\n".join([*lines, f"{present} of {len(found)} present, {human_size(total)}"])
