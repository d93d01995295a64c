"""Taking back what the end of the namespaces does not take back by itself."""

from __future__ import annotations

from pathlib import Path

from hcp.csi.local.names import loop_label
from hcp.errors import HcpError
from hcp.linux import loop
from hcp.local.host import machine
from hcp.local.node import cgroups, volumes
from hcp.local.state.layout import Layout
from hcp.local.state.spec import Spec


def clean_machine(layout: Layout, spec: Spec) -> None:
    """Link, route, rules, kernel settings, cgroups, the device of its volumes. Must run after the supervisor ended."""
    machine.disconnect(spec, remembered_tools(layout))
    cgroups.remove(spec.node_name)
    loop.detach_labelled(loop_label(spec.node_name))  # block volumes of pods that were not asked before they ended
    volumes.wait_released(layout)
    if left := cgroups.left(spec.node_name):
        raise HcpError(
            f"Some cgroups of cluster '{spec.name}' could not be removed",
            cause=", ".join(str(path) for path in left),
            hint="A process that cannot be killed holds them; try again in a moment.",
        )


def remembered_tools(layout: Layout) -> list[Path]:
    """Folders with the node's own tools, as they were when it was started."""
    try:
        lines = (layout.run / "tools").read_text().splitlines()
    except OSError:
        return []
    return [Path(line) for line in lines]
