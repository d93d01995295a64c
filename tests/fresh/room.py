"""The room: namespaces and a root of its own. It ends with the process that made it, whatever ends that.

The network is the machine's: package registries may be reachable only from there, even on its loopback address.
"""

from __future__ import annotations

import contextlib
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.fresh import cgroups, kernel

from hcp.linux.syscalls import (
    CLONE_NEWIPC,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUTS,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    MS_REC,
    mount,
    set_hostname,
    unshare,
)
from hcp.local.node import mounts


@dataclass(frozen=True)
class Room:
    root: Path
    cgroup: str
    read_only: Mapping[Path, str] = field(default_factory=dict)
    shared: Mapping[Path, str] = field(default_factory=dict)
    """Folders of the machine → where the room shows them."""


@contextlib.contextmanager
def opened(room: Room, work: Callable[[], None]) -> Iterator[int]:
    """Runs `work` as process 1 of the room and gives the pid to wait for. At the end nothing runs in it any more."""
    cgroups.make(room.cgroup)
    guard = os.fork()
    if guard == 0:
        _guard(room, work)
    try:
        yield guard
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(guard, signal.SIGTERM)
            os.waitpid(guard, 0)
        cgroups.remove(room.cgroup)


def wait(guard: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(guard, 0)[1])


def _guard(room: Room, work: Callable[[], None]) -> None:
    """Makes the namespaces. Asked to end, it kills process 1 and waits until the kernel has ended all the rest."""
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        kernel.die_with_parent()
        os.setsid()  # Ctrl-C is for the one who made the room
        cgroups.join(room.cgroup)
        found = cgroups.hierarchies()
        unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC | kernel.CLONE_NEWCGROUP)
        first = os.fork()
        if first == 0:
            _first(room, work, found)
        signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
        code = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _first(room: Room, work: Callable[[], None], hierarchies: list[tuple[str, str, str]]) -> None:
    code = 1
    try:
        kernel.die_with_parent()
        _mount(room, hierarchies)
        kernel.enter(str(room.root))
        set_hostname("fresh")
        cgroups.leave_the_root()
        os.umask(0o022)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _mount(room: Room, hierarchies: list[tuple[str, str, str]]) -> None:
    root = room.root
    safe = MS_NOSUID | MS_NODEV | MS_NOEXEC
    mount("none", "/", flags=MS_REC | kernel.MS_PRIVATE)
    mount(str(root), str(root), flags=MS_BIND)
    for path, place in room.shared.items():
        _bind(path, root, place)
    for path, place in room.read_only.items():
        _bind(path, root, place, read_only=True)
    modules = Path("/lib/modules")
    if modules.is_dir():
        _bind(modules.resolve(), root, "/usr/lib/modules", read_only=True)
    mount("proc", f"{root}/proc", "proc", safe)
    mount("sysfs", f"{root}/sys", "sysfs", safe)
    cgroups.mount_into(root, hierarchies)
    mounts.devices(kvm=Path("/dev/kvm").exists())
    mount("/dev", f"{root}/dev", flags=MS_BIND | MS_REC)
    mount("tmpfs", f"{root}/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")


def _bind(path: Path, root: Path, place: str, *, read_only: bool = False) -> None:
    target = root / place.lstrip("/")
    if path.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(str(path), str(target), flags=MS_BIND)
    if read_only:
        mount("none", str(target), flags=MS_BIND | MS_RDONLY | kernel.MS_REMOUNT)
