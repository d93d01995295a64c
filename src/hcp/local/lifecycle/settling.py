"""Waiting until every process of a supervisor is well; one that cannot start is named with its last words."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hcp.errors import HcpError
from hcp.local.state.layout import Layout
from hcp.local.supervisor import control

_READY_SECONDS = 180.0
_HOPELESS_RESTARTS = 4


def settle(
    layout: Layout, cluster: str, say: Callable[[str], None], lap: Callable[[str], None], node: str = ""
) -> None:
    """`node` is the name of a node that joined; the processes of the first are those of the cluster."""
    end = time.monotonic() + _READY_SECONDS
    version = -1
    well: set[str] = set()
    while True:
        facts = control.ask(layout, "watch", timeout=10.0, version=version, seconds=5)
        if facts is None:
            raise _failure(layout, cluster, node, "the supervisor ended")
        version = facts["version"]
        for item in facts["processes"]:
            if item["state"] == "running" and item["name"] not in well:
                well.add(item["name"])
                say(f"  {item['name']}{f' of {node}' if node else ''} is up ({item['readyAfter']:.1f} s)")
                lap(item["name"])
        waiting = [item for item in facts["processes"] if item["state"] != "running"]
        if not waiting:
            return
        hopeless = next((item for item in waiting if item["restarts"] >= _HOPELESS_RESTARTS), None)
        if hopeless is not None or time.monotonic() > end:
            blamed = hopeless or waiting[0]
            raise _failure(layout, cluster, node, _sentence(blamed), blamed["name"])


def _failure(layout: Layout, cluster: str, node: str, why: str, process: str = "supervisor") -> HcpError:
    said = "\n  ".join(telling_lines(layout.logs / f"{process}.log"))
    which = f"Node '{node}'" if node else f"Cluster '{cluster}'"
    where = f" --node {node}" if node else ""
    return HcpError(
        f"{which} did not come up: {why}",
        cause=f"its last words:\n  {said}" if said else None,
        hint=f"hcp local logs {process} --name {cluster}{where} shows more; running up again continues",
    )


def telling_lines(log: Path, count: int = 4) -> list[str]:
    """The last lines of a log, without the supervisor's own remarks."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [line[:300] for line in lines if line.strip() and not line.startswith("===")][-count:]


def _sentence(item: dict[str, Any]) -> str:
    return f"{item['name']} is {item['state']}" + (f" ({item['why']})" if item["why"] else "")
