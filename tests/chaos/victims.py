"""The processes of one embedded cluster, and of no other: what its supervisors are the ancestors of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.plan import MACHINE

from hcp.local.state.layout import Layout
from hcp.local.state.nodes import all_nodes
from hcp.local.state.spec import Spec
from hcp.local.supervisor import control

PROC = Path("/proc")


@dataclass(frozen=True)
class Victim:
    """A process, told from a later one with the same pid by the time it began."""

    pid: int
    began: str
    node: int
    command: str

    def alive(self) -> bool:
        return control.start_time(self.pid) == self.began


@dataclass(frozen=True)
class Seen:
    """One line of the machine's process table."""

    pid: int
    parent: int
    argv: tuple[str, ...]


def victims(layout: Layout, spec: Spec, part: str) -> list[Victim]:
    """All that run this part now, always in the same order."""
    table = list(_table())
    found = []
    for node in all_nodes(spec):
        running = control.running(node.layout(layout))
        if running is None:
            continue
        for seen in of(table, running.pid, part):
            began = control.start_time(seen.pid)
            if began:
                found.append(Victim(seen.pid, began, node.index, " ".join(seen.argv)[:200]))
    return sorted(found, key=lambda one: (one.node, one.command, one.pid))


def of(table: Iterable[Seen], supervisor: int, part: str) -> list[Seen]:
    """Of a process table: those below a supervisor that are this part. Pure.

    What the supervisor itself started is the node's; what lies below a shim of containerd runs in a pod.
    """
    rows = list(table)
    children: dict[int, list[Seen]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row)
    own = [row for row in children.get(supervisor, []) if not _is_shim(row)]
    if not part.startswith("hosted ") and part not in (*_PODS, MACHINE):
        return [row for row in own if _program(row) == part]
    inside = [row for shim in children.get(supervisor, []) if _is_shim(shim) for row in _below(children, shim.pid)]
    if part == MACHINE:
        return [row for row in inside if _program(row).startswith("qemu-")]
    if part.startswith("hosted "):
        return [row for row in inside if _program(row) == part.removeprefix("hosted ")]
    return [row for row in inside if _words(_PODS[part], row.argv)]


# hcp's own programs, by words of their command lines.
_PODS = {
    "operator": ("operator", "run"),
    "router": ("router", "run"),
    "ignition-server": ("ignition-server", "run"),
}


def _words(wanted: tuple[str, ...], argv: tuple[str, ...]) -> bool:
    return any(argv[at : at + len(wanted)] == wanted for at in range(len(argv)))


def _below(children: dict[int, list[Seen]], pid: int) -> list[Seen]:
    found = []
    for child in children.get(pid, []):
        found += [child, *_below(children, child.pid)]
    return found


def _is_shim(row: Seen) -> bool:
    return _program(row).startswith("containerd-shim")


def _program(row: Seen) -> str:
    return Path(row.argv[0]).name if row.argv else ""


def _table() -> Iterable[Seen]:
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            argv = (entry / "cmdline").read_bytes().decode("utf-8", "replace").rstrip("\0").split("\0")
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue  # it ended meanwhile
        if argv != [""]:
            yield Seen(int(entry.name), parent, tuple(argv))
