"""What runs in an embedded cluster, and what is wrong, in sentences."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hcp.local.state.layout import Layout
from hcp.local.state.lookup import existing
from hcp.local.state.nodes import Node, joined
from hcp.local.state.spec import Spec
from hcp.local.status.memory import machine_pids, pss_bytes
from hcp.local.supervisor import control


@dataclass(frozen=True)
class Line:
    """One component."""

    component: str
    version: str = ""
    pid: int = 0
    memory: int = 0
    health: str = ""
    well: bool = True
    why: str = ""


@dataclass
class Status:
    name: str
    profile: str
    state: str
    server: str
    lines: list[Line] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def well(self) -> bool:
        return self.state == "up" and not self.wrong


def look(name: str) -> Status:
    layout, spec = existing(name)
    status = Status(name, spec.profile, "up", spec.server)
    found = control.running(layout)
    facts = control.ask(layout, "facts") if found is not None else None
    if found is None:
        _not_running(layout, spec, status)
        return status
    if facts is None:
        status.state = "stuck"
        status.wrong.append(
            f"The supervisor (pid {found.pid}) does not answer; hcp local up --name {name} starts it again."
        )
        return status
    pids = machine_pids(found.pid)
    status.lines.append(Line("supervisor", pid=found.pid, memory=pss_bytes(found.pid), health="running"))
    for item in facts["processes"]:
        status.lines.append(_line(item, pids))
    status.wrong += [
        f"{line.component} is {line.health}{': ' + line.why if line.why else ''}; "
        f"see hcp local logs {line.component} --name {name}."
        for line in status.lines
        if not line.well
    ]
    for node in joined(spec):
        _joined_node(node, node.layout(layout), status)
    if spec.has_node and _serves(facts):
        from hcp.local.status.cluster import look_inside

        asyncio.run(look_inside(layout, spec, status))
    return status


def _joined_node(node: Node, layout: Layout, status: Status) -> None:
    """The processes of a node after the first, under its name."""
    found = control.running(layout)
    facts = control.ask(layout, "facts") if found is not None else None
    if found is None or facts is None:
        status.lines.append(Line(node.name, health="stopped", well=False))
        status.wrong.append(
            f"Node {node.name} does not run; hcp local node start {node.name} --name {status.name} starts it."
        )
        return
    pids = machine_pids(found.pid)
    status.lines.append(Line(f"{node.name}/supervisor", pid=found.pid, memory=pss_bytes(found.pid), health="running"))
    for item in facts["processes"]:
        line = _line({**item, "name": f"{node.name}/{item['name']}"}, pids)
        status.lines.append(line)
        if not line.well:
            status.wrong.append(
                f"{item['name']} of {node.name} is {line.health}{': ' + line.why if line.why else ''}; "
                f"see hcp local logs {item['name']} --name {status.name} --node {node.name}."
            )


def _not_running(layout: Layout, spec: Spec, status: Status) -> None:
    if control.was_started(layout):
        status.state = "killed"
        status.wrong.append(
            f"The supervisor of '{spec.name}' was killed or the machine was restarted, so nothing of it runs; "
            f"hcp local up --name {spec.name} brings it back with its data."
        )
    else:
        status.state = "down"
        status.wrong.append(f"Cluster '{spec.name}' is down; hcp local up --name {spec.name} starts it.")


def _line(item: dict[str, Any], pids: dict[int, int]) -> Line:
    pid = pids.get(item["pid"], 0)
    well = item["state"] == "running"
    health = item["state"] + (f", {item['restarts']} restarts" if item["restarts"] else "")
    return Line(item["name"], item["version"], pid, pss_bytes(pid) if pid else 0, health, well, item["why"])


def _serves(facts: dict[str, Any]) -> bool:
    return any(item["name"] == "kube-apiserver" and item["state"] == "running" for item in facts["processes"])
