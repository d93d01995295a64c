"""Where official images would not do: what this machine lacks that our own builds can do without."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache

_MAKE_LINK = ("unshare", "--net", "ip", "link", "add", "hcp-probe", "type", "dummy")


@cache
def kubevirt_unfit() -> str:
    """KubeVirt's bridge binding needs links of type dummy. All of its images come from one place, official or built."""
    if os.geteuid() != 0 or not all(shutil.which(program) for program in ("unshare", "ip")):
        return ""  # cannot be seen; every usual kernel has them
    done = subprocess.run(_MAKE_LINK, capture_output=True, check=False)
    if done.returncode == 0:
        return ""
    return "this kernel has no links of type dummy, which official KubeVirt needs and our build does without"
