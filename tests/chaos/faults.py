"""Doing one fault to an embedded cluster, and undoing it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.chaos.plan import CUT, FILL, FREEZE, KILL, SKEW, STOP, Fault
from tests.chaos.victims import Victim, victims
from tests.support.e2e.local_tools import hcp
from tests.support.e2e.partition import partitioned
from tests.support.eventually import eventually_sync

from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import all_nodes, joined
from hcp.local.state.spec import Spec

_FILLER = "chaos-filler"
# Of a volume that was asked for with 1 GiB; one that takes more is not bounded, and is left alone.
_MOST = 1280 << 20
_STEP = 32 << 20
_SPARE = 8 << 30


class NotDone(Exception):
    """There is nobody to do this to at the moment, and why."""


class Faults:
    """Of one cluster, by its name. Nothing of another cluster is ever touched."""

    def __init__(self, name: str, skew: Callable[[Fault], str] | None = None) -> None:
        """`skew`: how the clock of a virtual machine is put wrong, where there are some."""
        self.name = name
        self._skew = skew or _nobody
        self.layout = Layout.of(name)

    @property
    def spec(self) -> Spec:
        found = specs.load(self.layout)
        assert found is not None, f"there is no cluster {self.name}"
        return found

    def do(self, fault: Fault) -> str:
        """From its beginning to its end; says who it hit."""
        how = {
            KILL: self._kill,
            FREEZE: self._freeze,
            CUT: self._cut,
            FILL: self._fill,
            STOP: self._stop,
            SKEW: self._skew,
        }
        return how[fault.kind](fault)

    def _victim(self, part: str, pick: int) -> Victim:
        found = victims(self.layout, self.spec, part)
        if not found:
            raise NotDone(f"no {part} runs")
        return found[pick % len(found)]

    def _kill(self, fault: Fault) -> str:
        victim = self._victim(fault.part, fault.pick)
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim.pid, signal.SIGKILL)
        return _named(victim)

    def _freeze(self, fault: Fault) -> str:
        victim = self._victim(fault.part, fault.pick)
        try:
            os.kill(victim.pid, signal.SIGSTOP)
        except ProcessLookupError:
            raise NotDone(f"{_named(victim)} has just ended") from None
        try:
            time.sleep(fault.seconds)
        finally:
            if victim.alive():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim.pid, signal.SIGCONT)
        return _named(victim)

    def _cut(self, fault: Fault) -> str:
        nodes = [node.index for node in all_nodes(self.spec)]
        one = nodes[fault.pick % len(nodes)]
        with partitioned(self.name, one, *(other for other in nodes if other != one)):
            time.sleep(fault.seconds)
        return f"node {one} from all others"

    def _stop(self, fault: Fault) -> str:
        """Every node but the first, which has the control plane: of it, processes are killed."""
        nodes = joined(self.spec)
        if not nodes:
            raise NotDone("there is one node only")
        node = str(nodes[fault.pick % len(nodes)].index)
        hcp("local", "node", "stop", node, "--now", "--name", self.name)
        time.sleep(fault.seconds)
        # The API server may be away for a moment: the command says so and can be repeated.
        eventually_sync(lambda: hcp("local", "node", "start", node, "--name", self.name), "the node starts", 600)
        return f"node {node}"

    def _fill(self, fault: Fault) -> str:
        victim = self._victim("hosted etcd", fault.pick)
        with _filled(victim) as size:
            time.sleep(fault.seconds)
        return f"{size >> 20} MiB beside {_named(victim)}"


@contextlib.contextmanager
def _filled(victim: Victim) -> Iterator[int]:
    """The volume of an etcd full, up to the last MiB; also when that etcd ends by it, it is emptied again."""
    try:
        folder = os.open(f"/proc/{victim.pid}/root{_data_dir(victim.pid)}", os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise NotDone(f"the volume of {_named(victim)} cannot be reached: {error}") from None
    try:
        there = os.fstatvfs(folder)
        if there.f_bavail * there.f_frsize < _SPARE and there.f_blocks * there.f_frsize > _MOST:
            raise NotDone("the disk of the machine has too little room for it")
        descriptor = os.open(_FILLER, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder)
        try:
            size = _fill_up(descriptor)
            if size >= _MOST:
                raise NotDone("its volume is not bounded (the machine has no btrfs)")
            yield size
        finally:
            os.close(descriptor)
            os.unlink(_FILLER, dir_fd=folder)
    finally:
        os.close(folder)


def _fill_up(descriptor: int) -> int:
    size, step = 0, _STEP
    while step >= 1 << 20 and size < _MOST:
        try:
            os.posix_fallocate(descriptor, size, step)
            size += step
        except OSError:
            step //= 2
    return size


def _data_dir(pid: int) -> str:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    return next(word.partition("=")[2] for word in words if word.startswith("--data-dir="))


def _nobody(fault: Fault) -> str:
    raise NotDone("there are no virtual machines")


def _named(victim: Victim) -> str:
    return f"pid {victim.pid} on node {victim.node}"
