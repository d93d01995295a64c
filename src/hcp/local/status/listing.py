"""All embedded clusters of this machine."""

from __future__ import annotations

import json
from typing import Any

from hcp.errors import HcpError
from hcp.local.state import spec as specs
from hcp.local.state.layout import layouts
from hcp.local.status.tables import table
from hcp.local.supervisor import control


def clusters() -> list[dict[str, Any]]:
    found = []
    for layout in layouts():
        name = layout.root.name
        try:
            spec = specs.load(layout)
        except HcpError as error:
            found.append({"name": name, "profile": "", "state": "unreadable", "server": "", "why": str(error)})
            continue
        if spec is None:
            continue
        found.append({"name": name, "profile": spec.profile, "state": _state(layout), "server": spec.server, "why": ""})
    return found


def _state(layout: Any) -> str:
    if control.running(layout) is not None:
        return "up"
    return "killed" if control.was_started(layout) else "down"


def render(found: list[dict[str, Any]], output: str) -> str:
    if output == "json":
        return json.dumps(found, indent=2) + "\n"
    if output == "name":
        return "".join(f"{item['name']}\n" for item in found)
    if not found:
        return "No embedded clusters. hcp local up makes one.\n"
    rows = [[item["name"], item["profile"], item["state"], item["server"]] for item in found]
    return table(["NAME", "PROFILE", "STATE", "SERVER"], rows)
