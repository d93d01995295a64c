"""The machine itself: QEMU out of the payload, in a root file system of its own, and commands by ssh."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.fresh import cgroups
from tests.hosts.settings import ADDRESS, KERNEL, OUTSIDE, OUTSIDE_SAYS
from tests.support.e2e.own_machine import unpack
from tests.support.eventually import eventually_sync
from tests.support.ports import free_port

from hcp.local.addons.emulation import QEMU_PROCESSOR

# Processors are emulated: minutes, where a machine takes seconds.
_BOOT = 1800.0
_LONG = 3600.0
_ANSWER = f"#!/bin/sh\nprintf 'HTTP/1.0 200 OK\\r\\nContent-Type: text/plain\\r\\n\\r\\n{OUTSIDE_SAYS}\\n'\n"


class Failed(Exception):
    """A command on the machine ended with an error, or a check of what it said did not hold."""


@dataclass
class Machine:
    key: Path
    port: int
    log: Path
    process: subprocess.Popen[bytes]

    def run(self, line: str, *, seconds: float = _LONG, check: bool = True) -> str:
        """A line of shell as root, in a session of its own; gives what it said, and writes both into the log."""
        done = subprocess.run(
            [*self._ssh(), "root@127.0.0.1", line],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds,
        )
        with self.log.open("a") as log:
            log.write(f"\n$ {line}\n{done.stdout}[{done.returncode}]\n")
        if check and done.returncode != 0:
            raise Failed(f"{line} ended with {done.returncode}:\n{done.stdout[-3000:]}")
        return done.stdout

    def comes_up(self) -> None:
        def answers() -> bool:
            if self.process.poll() is not None:
                return True  # no need to wait for it; the command below says that nobody answers
            return self.run("echo here", seconds=60, check=False).endswith("here\n")

        eventually_sync(answers, "the machine answers by ssh", _BOOT)
        self.run("systemctl is-system-running --wait", check=False)

    def _ssh(self) -> list[str]:
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "BatchMode=yes")
        return [
            *("ssh", "-i", str(self.key), "-p", str(self.port), "-o", "ConnectTimeout=30"),
            *("-o", "ServerAliveInterval=60", "-o", "ServerAliveCountMax=20"),
            *(word for option in options for word in ("-o", option)),
        ]


@contextmanager
def started(folder: Path, host: Path, payload: Path, key: Path, log: Path, memory: int) -> Iterator[Machine]:
    """`host` is the folder of the distribution's disk, which stays as it is; `folder` is gone at the end."""
    root = folder / "qemu"
    unpack("rootfs-virt", root)
    os.mknod(root / "dev" / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    for name in ("vmlinuz", "initrd"):
        shutil.copyfile(host / name, root / name)
    os.link(host / "disk.raw", root / "host.raw")
    payload.rename(root / "payload.raw")
    (root / "answer").write_text(_ANSWER)
    (root / "answer").chmod(0o755)
    chroot = ["setpriv", "--pdeathsig", "KILL", "chroot", str(root)]
    for name in ("host", "payload"):
        layer = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", f"/{name}.raw", f"/{name}.qcow2"]
        subprocess.run([*chroot, *layer], check=True)
    port = free_port()
    group = f"hcp-hosts-{port}"
    cgroups.make(group)  # beside embedded clusters, each of which weighs as much as many processes
    join = partial(cgroups.join, group)
    process = subprocess.Popen([*chroot, *_words(port, memory)], stdin=subprocess.DEVNULL, preexec_fn=join)  # noqa: PLW1509
    try:
        yield Machine(key, port, log, process)
    finally:
        process.terminate()
        process.wait(60)
        cgroups.remove(group)
        shutil.copyfile(root / "console.log", log.with_name(f"{log.stem}-console.log"))
        shutil.rmtree(root)


def _words(port: int, memory: int) -> list[str]:
    network = (
        f"user,model=virtio-net-pci,restrict=on,dhcpstart={ADDRESS},hostfwd=tcp:127.0.0.1:{port}-{ADDRESS}:22,"
        f"guestfwd=tcp:{OUTSIDE}:80-cmd:/answer"
    )
    return [
        *("qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", QEMU_PROCESSOR, "-smp", "2"),
        *("-m", str(memory), "-display", "none", "-monitor", "none", "-serial", "file:/console.log"),
        *("-kernel", "/vmlinuz", "-initrd", "/initrd", "-append", KERNEL, "-nic", network),
        *("-drive", "file=/host.qcow2,if=virtio,cache=unsafe", "-drive", "file=/payload.qcow2,if=virtio,cache=unsafe"),
    ]
