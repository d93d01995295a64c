"""Programs of the machine that a cluster needs; a machine that lacks them gets ours."""

from __future__ import annotations

import shutil
from functools import cache


@cache
def ip() -> str:
    """iproute2's `ip`: the machine's own, else the one out of Debian's package that comes with the node's tools."""
    found = shutil.which("ip") or shutil.which("ip", path="/usr/sbin:/sbin")
    if found is not None:
        return found
    from hcp import payload

    return str(payload.ensure(["node-tools"])["node-tools"] / "bin" / "ip")
