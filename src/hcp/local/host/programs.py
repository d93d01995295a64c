"""Programs of the machine that a cluster needs; a machine that lacks them gets ours."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

_SYSTEM = "/usr/sbin:/sbin"


@cache
def ip() -> str:
    """iproute2's `ip`: the machine's own, else the one out of Debian's package that comes with the node's tools."""
    found = find("ip")
    if found is not None:
        return found
    from hcp import payload

    return str(payload.ensure(["node-tools"])["node-tools"] / "bin" / "ip")


def find(name: str) -> str | None:
    """The machine's own program. Folders of administrators are not in everybody's search path."""
    return shutil.which(name) or shutil.which(name, path=_SYSTEM)


def environment(tools: Sequence[Path]) -> dict[str, str]:
    """One in which the node's tools are found first; `tools` are their folders."""
    folders = [str(tool / "bin") for tool in tools]
    return {**os.environ, "PATH": ":".join([*folders, os.environ.get("PATH", ""), _SYSTEM])}
