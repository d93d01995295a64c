"""Virtual machines in a run: a cluster that has some, clocks inside them, and what must hold of them afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.chaos.audit import NS
from tests.chaos.faults import NotDone
from tests.chaos.plan import Fault
from tests.support.e2e.control_planes import create, guest_of
from tests.support.e2e.hosted_tools import SMALL_VM, Guest
from tests.support.e2e.local_tools import Cluster
from tests.support.eventually import eventually_sync

from hcp.api.paths import at
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kube.resources import Resource

Object = Mapping[str, Any]
MANNED = "manned"
VMIS = Resource("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
_LAUNCHER = "vm.kubevirt.io/name"
# How far a clock is put wrong, in seconds, in both directions.
_LEAST, _MOST = 60, 900


class Machines:
    """Those of one hosted cluster, which nobody edits, upgrades or deletes."""

    def __init__(self, management: Cluster, folder: Path, number: int) -> None:
        self._management, self._folder, self.number = management, folder, number

    def create(self) -> None:
        more = (*SMALL_VM, "--node-pool-replicas", str(self.number))
        create(self._management, self._folder, MANNED, *more)

    @property
    def guest(self) -> Guest:
        return guest_of(self._management, self._folder, MANNED)

    def wait(self) -> None:
        eventually_sync(lambda: len(self.guest.ready_nodes()) == self.number, "every machine is a ready node", 2400)

    def skew(self, fault: Fault) -> str:
        """The clock of a machine goes wrong and, some time later, right again."""
        try:
            guest = self.guest
            node = sorted(guest.ready_nodes())[fault.pick % self.number]
            away = _LEAST + fault.pick % (_MOST - _LEAST)
            there, back = ("+", "-") if fault.pick & 1 else ("-", "+")
            put = "busybox date -s @$(($(busybox date +%s) {} {}))"
            line = f"{put.format(there, away)}; busybox sleep {fault.seconds}; {put.format(back, away)}"
            with guest.as_root_on(node, line, inside=True) as pod:
                eventually_sync(lambda: _ended(guest, pod), f"the clock of {node} is right again", 600)
        except (AssertionError, IndexError) as error:
            raise NotDone(f"no machine could be told: {error}") from error
        return f"node {node} by {there}{away} s"

    async def problems(self, client: Client) -> list[str]:
        ns = f"{NS}-{MANNED}"
        kinds = (k.MACHINES, k.KUBEVIRTMACHINES, k.VIRTUALMACHINES, VMIS, k.PODS)
        found = {one.kind: await client.list(one, ns) for one in kinds}
        return counted(self.number, found, self.guest.get("nodes")["items"])


def counted(number: int, lists: Mapping[str, Sequence[Object]], nodes: Sequence[Object]) -> list[str]:
    """Pure: each machine is one VM that runs once and is one node, and there is nothing else."""
    wrong = []
    machines = lists["Machine"]
    if len(machines) != number:
        wrong.append(f"{len(machines)} machines, not {number}")
    wanted = {str(at(one, "spec.infrastructureRef.name")) for one in machines}
    for kind in ("KubevirtMachine", "VirtualMachine", "VirtualMachineInstance"):
        there = {str(one["metadata"]["name"]) for one in lists[kind]}
        wrong += [f"{kind} {name} belongs to no machine" for name in sorted(there - wanted)]
        wrong += [f"machine {name} has no {kind}" for name in sorted(wanted - there)]
    running = [one for one in lists["Pod"] if at(one, "status.phase") not in ("Failed", "Succeeded")]
    for name in sorted(wanted):
        pods = [one for one in running if one["metadata"].get("labels", {}).get(_LAUNCHER) == name]
        if len(pods) != 1:
            wrong.append(f"machine {name} runs {len(pods)} times")
    named = {str(at(one, "status.nodeRef.name")) for one in machines}
    ready = {str(one["metadata"]["name"]) for one in nodes if _ready(one)}
    wrong += [f"node {name} is no machine" for name in sorted({str(n["metadata"]["name"]) for n in nodes} - named)]
    wrong += [f"machine's node {name} is not ready" for name in sorted(named - ready)]
    return wrong


def _ready(node: Object) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in at(node, "status.conditions") or ())


def _ended(guest: Guest, pod: str) -> bool:
    return str(guest.get(pod, "-n", "kube-system")["status"].get("phase")) in ("Succeeded", "Failed")
