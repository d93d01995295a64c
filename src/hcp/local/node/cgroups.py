"""The cgroup below which everything of one cluster runs, so that two kubelets never touch each other's."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from hcp.local.host.checks import cgroup_controllers

_WANTED = ("cpuset", "cpu", "io", "memory", "hugetlb", "pids")
_PATIENCE = 10.0
_LEAF = "node"
# A cgroup counts as much as one process beside it, and a cluster is a hundred of them: on a busy machine, where most
# processes are in no cgroup of their own, it would hardly run. File (cgroup v1, v2) → sixteen times the usual weight.
_WEIGHTS = {"cpu.shares": "16384", "cpu.weight": "1600"}


def make(name: str) -> None:
    """Makes the cgroup in every hierarchy."""
    for root in cgroup_controllers():
        if (root / "cgroup.controllers").exists():
            _delegate(root)
        folder = root / name
        folder.mkdir(exist_ok=True)
        if (folder / "cgroup.controllers").exists():
            _delegate(folder)
        for item in ("cpuset.cpus", "cpuset.mems"):  # v1: a new cpuset is empty and would hold no process
            with contextlib.suppress(OSError):
                if (folder / item).exists() and not (folder / item).read_text().strip():
                    (folder / item).write_text((root / item).read_text())
        for item, weight in _WEIGHTS.items():
            with contextlib.suppress(OSError):
                if (folder / item).exists():
                    (folder / item).write_text(weight)


def join(name: str) -> None:
    """v2: puts this process and its children, the node but for its pods, into a leaf of the cgroup.

    Where they were started, systemd may end them: a service's at its stop, on some machines a session's at its end. A
    cgroup that hands on controllers takes no process itself. With v1 they stay, as no systemd of today looks there.
    """
    for root in cgroup_controllers():
        folder = root / name
        if (folder / "cgroup.controllers").exists():
            leaf = folder / _LEAF
            leaf.mkdir(exist_ok=True)
            (leaf / "cgroup.procs").write_text(str(os.getpid()))


def _delegate(folder: Path) -> None:
    """v2: lets children of this cgroup have controllers, as many as the machine offers."""
    offered = (folder / "cgroup.controllers").read_text().split()
    for controller in _WANTED:
        if controller in offered:
            with contextlib.suppress(OSError):
                (folder / "cgroup.subtree_control").write_text(f"+{controller}")


def remove(name: str) -> None:
    """Removes the cgroup and everything below it; processes still in it are killed first."""
    for root in cgroup_controllers():
        folder = root / name
        end = time.monotonic() + _PATIENCE
        while folder.exists():
            _kill(folder)
            _remove_tree(folder)
            if time.monotonic() > end:
                break
            time.sleep(0.02)


def _kill(folder: Path) -> None:
    for path in folder.rglob("cgroup.procs"):
        with contextlib.suppress(OSError):
            for pid in path.read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)


def _remove_tree(folder: Path) -> None:
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            Path(path).rmdir()


def left(name: str) -> list[Path]:
    """What still exists of the cgroup."""
    return [root / name for root in cgroup_controllers() if (root / name).exists()]
