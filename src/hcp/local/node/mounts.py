"""The node's view of the file system: the machine's own, with /run, /dev, /var and /etc of its own.

Nothing the node writes to those places reaches the machine: /run and /dev are in memory, /var is a folder of the
state, /etc is the machine's with our changes laid over it. All of it ends with the mount namespace.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

from hcp.linux import protocols
from hcp.linux.syscalls import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_REC, MS_SHARED, MS_SLAVE, mount
from hcp.local.node.volumes import mount_pool
from hcp.local.state.layout import Layout

_DEVICES = (
    *("null", "zero", "full", "random", "urandom", "tty", "fuse", "kmsg", "loop-control", "net/tun", "vsock"),
    *("vhost-net", "vhost-vsock"),
)
_COVERED = (Path("/var"), Path("/run"))
# The kernel makes loop devices as they are asked for, and nobody fills this /dev. A block volume takes two: that of its
# driver, and the one by which the kubelet holds it.
_LOOP_MAJOR, _LOOPS = 7, 256


def build(layout: Layout, keep: list[Path], pool: Path, *, kvm: bool) -> None:
    """Must run in a fresh mount, pid and network namespace, as its process 1. All nodes share `pool`, the volumes."""
    mount("none", "/", flags=MS_REC | MS_SLAVE)  # nothing we mount may appear on the machine
    mount("none", "/", flags=MS_REC | MS_SHARED)  # what pods mount must reach the kubelet, and the other way round
    if pool.exists():
        mount_pool(pool, layout.var / "lib" / "storage")
    held = {path: os.open(path, os.O_PATH) for path in (*_needed(layout, keep), Path("/sys/fs/cgroup"))}
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    _bind(held.pop(Path("/sys/fs/cgroup")), Path("/sys/fs/cgroup"))
    devices(kvm=kvm)
    mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    _var(layout)
    for path, descriptor in held.items():
        path.mkdir(parents=True, exist_ok=True)
        _bind(descriptor, path)
    _etc(layout)


def _needed(layout: Layout, keep: list[Path]) -> list[Path]:
    """Folders we go on needing although what is around them gets covered; an outer one brings the inner ones."""
    wanted = {path.resolve() for path in (layout.root, Path(sys.prefix), Path(sys.base_prefix), *keep) if path.exists()}
    covered = sorted(path for path in wanted if any(path.is_relative_to(over) for over in _COVERED))
    return [path for path in covered if not any(path != other and path.is_relative_to(other) for other in covered)]


def _bind(descriptor: int, target: Path) -> None:
    mount(f"/proc/self/fd/{descriptor}", str(target), flags=MS_BIND | MS_REC)
    os.close(descriptor)


def devices(*, kvm: bool) -> None:
    """A /dev with what a node needs, in memory."""
    names = [*_DEVICES, *(path.name for path in Path("/dev").glob("loop[0-9]*")), *(["kvm"] if kvm else [])]
    nodes = {name: (Path("/dev") / name).stat() for name in names if (Path("/dev") / name).exists()}
    mount("tmpfs", "/dev", "tmpfs", MS_NOSUID, "mode=755")
    for name, facts in nodes.items():
        if stat.S_ISCHR(facts.st_mode) or stat.S_ISBLK(facts.st_mode):
            path = Path("/dev") / name
            path.parent.mkdir(exist_ok=True)
            os.mknod(path, facts.st_mode, facts.st_rdev)
            path.chmod(0o666 if name in ("kvm", "net/tun", "fuse", "vhost-net") else stat.S_IMODE(facts.st_mode))
    for number in range(_LOOPS if "loop-control" in nodes else 0):
        path = Path(f"/dev/loop{number}")
        if not path.exists():
            os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(_LOOP_MAJOR, number))
    for folder in ("pts", "shm", "mqueue"):
        (Path("/dev") / folder).mkdir()
    mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620,gid=5")
    mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    mount("mqueue", "/dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for name, target in (
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ):
        (Path("/dev") / name).symlink_to(target)


def _var(layout: Layout) -> None:
    var = layout.var
    for name in ("lib", "log", "cache", "tmp", "lib/kubelet", "lib/containerd", "lib/storage", "lib/registry"):
        (var / name).mkdir(parents=True, exist_ok=True)
    (var / "tmp").chmod(0o1777)
    if not (var / "run").is_symlink():
        (var / "run").symlink_to("../run")
    descriptor = os.open(var, os.O_PATH)
    _bind(descriptor, Path("/var"))


def _etc(layout: Layout) -> None:
    """The machine's /etc with the node's host names, resolver and trust laid over it, made anew at every start."""
    upper, work = layout.root / "node-etc" / "upper", layout.root / "node-etc" / "work"
    shutil.rmtree(layout.root / "node-etc", ignore_errors=True)
    upper.mkdir(parents=True)
    work.mkdir()
    for name in ("hosts", "resolv.conf", "hostname"):
        shutil.copyfile(layout.etc / "node" / name, upper / name)
        (upper / name).chmod(0o644)
    if not Path("/", protocols.PATH).exists():
        (upper / "protocols").write_text(protocols.TEXT)
        (upper / "protocols").chmod(0o644)
    mount("overlay", "/etc", "overlay", 0, f"lowerdir=/etc,upperdir={upper},workdir={work}")
