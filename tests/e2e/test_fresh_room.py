"""The clean room of `make test-fresh`: apart from the machine while it is there, and gone without a trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from tests.fresh import leftovers
from tests.fresh.room import Room, opened, wait
from tests.fresh.steps import run_one
from tests.support.eventually import eventually_sync

from hcp.local.host.checks import cgroup_controllers
from hcp.local.node.cgroups import left

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces with a root of their own need root")
_FOLDERS = ("proc", "sys", "dev", "run", "tmp")
_USR = ("bin", "sbin", "lib", "lib64")


def room_in(folder: Path) -> Room:
    """A room with the machine's own programs, read-only."""
    root = folder / "root"
    for name in _FOLDERS:
        (root / name).mkdir(parents=True)
    for name in _USR:
        (root / name).symlink_to(f"usr/{name}")
    return Room(root, cgroup=folder.name, read_only={Path("/usr"): "/usr"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / f"{leftovers.PREFIX}{uuid.uuid4().hex[:8]}"
    made.mkdir()
    (made / leftovers.LOCK).touch()
    return made


def in_room(folder: Path, script: str) -> int:
    log = os.open(folder / "log", os.O_RDWR | os.O_CREAT)
    room = room_in(folder)
    with opened(
        room, lambda: os._exit(run_one(["/bin/sh", "-c", script], {"PATH": "/usr/bin:/usr/sbin"}, log))
    ) as guard:
        return wait(guard)


def test_it_sees_itself_alone(folder: Path) -> None:
    script = "hostname; ls -d /proc/[0-9]*; cat /proc/self/cgroup; ls /sys/fs/cgroup; touch /usr/x; touch /tmp/mine"
    in_room(folder, script)
    said = (folder / "log").read_text()
    assert said.startswith("fresh\n")
    assert "/proc/1\n" in said
    assert said.count("/proc/") <= 4, said
    assert "Read-only file system" in said
    assert folder.name not in said, "its own cgroup is the root of what it sees"
    assert (folder / "root/tmp/mine").exists()
    assert left(folder.name) == []


def test_the_result_of_a_command_comes_out(folder: Path) -> None:
    assert in_room(folder, "exit 7") == 7


def test_orphans_are_buried_and_end_with_the_room(folder: Path) -> None:
    in_room(folder, "(sleep 1000 &) ; (true &) ; sleep 0.2; cat /proc/[0-9]*/stat | grep -c ' Z '; true")
    assert (folder / "log").read_text().splitlines()[-1] == "0"
    assert left(folder.name) == []


def test_a_killed_maker_takes_the_room_along_and_the_next_one_sweeps(folder: Path) -> None:
    program = f"""
import os
from pathlib import Path
from tests.e2e.test_fresh_room import in_room
in_room(Path({str(folder)!r}), "mkdir /tmp/begun; sleep 1000")
"""
    maker = subprocess.Popen([sys.executable, "-c", program])
    eventually_sync((folder / "root/tmp/begun").exists, "the room is open")
    maker.send_signal(signal.SIGKILL)
    maker.wait()
    eventually_sync(lambda: not processes(folder.name), "everything in the room ended")
    leftovers.sweep(folder.parent)
    assert not folder.exists()
    assert left(folder.name) == []


def processes(cgroup: str) -> list[str]:
    found = [(root / cgroup / "cgroup.procs") for root in cgroup_controllers()]
    return [pid for path in found if path.exists() for pid in path.read_text().split()]
