"""The nodes of an embedded cluster, as this machine sees them."""

from __future__ import annotations

import json

from hcp.local.state.layout import Layout
from hcp.local.state.lookup import existing
from hcp.local.state.nodes import all_nodes
from hcp.local.status.tables import table
from hcp.local.supervisor import control


def listed(name: str) -> list[dict[str, str]]:
    layout, spec = existing(name)
    return [
        {"name": node.name, "address": node.address, "pods": ",".join(node.pods), "state": _state(node.layout(layout))}
        for node in all_nodes(spec)
    ]


def _state(layout: Layout) -> str:
    if control.running(layout) is None:
        return "stopped"
    facts = control.ask(layout, "facts")
    if facts is None:
        return "stuck"
    unwell = sum(item["state"] != "running" for item in facts["processes"])
    return f"{unwell} processes not well" if unwell else "running"


def render(found: list[dict[str, str]], output: str) -> str:
    if output == "json":
        return json.dumps(found, indent=2) + "\n"
    if output == "name":
        return "".join(f"{item['name']}\n" for item in found)
    if not found:
        return "A cluster of profile api has no nodes.\n"
    return table(["NAME", "ADDRESS", "PODS", "STATE"], [list(item.values()) for item in found])
