"""How much memory processes use, as the machine sees them."""

from __future__ import annotations

import contextlib
from pathlib import Path


def pss_bytes(pid: int) -> int:
    """A process's proportional share of memory; 0 when it cannot be read."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def machine_pids(supervisor: int) -> dict[int, int]:
    """Pid inside the supervisor's pid namespace → pid on the machine."""
    try:
        space = Path(f"/proc/{supervisor}/ns/pid").readlink()
    except OSError:
        return {}
    found: dict[int, int] = {}
    for proc in Path("/proc").iterdir():
        if not proc.name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError):
            if (proc / "ns" / "pid").readlink() != space:
                continue
            for line in (proc / "status").read_text().splitlines():
                if line.startswith("NSpid:"):
                    found[int(line.split()[-1])] = int(proc.name)
                    break
    return found
