"""Giving volumes to machines and taking them back. No volume that has one writer is ever on two machines.

Three things keep that: what machines have is looked at before each attachment; who was given a volume is written on it
first, in a write that names the version it replaces, so a second controller loses; and nobody is forgotten there before
the infra cluster shows that the disk is gone from it.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping
from typing import Any

from hcp.api.names import MARK_CSI_PUBLISHED
from hcp.api.paths import at
from hcp.csi.errors import Aborted, FailedPrecondition, NotFound, ResourceExhausted, Unavailable
from hcp.csi.kubevirt import hotplug, objects
from hcp.csi.kubevirt.infra import Infra
from hcp.csi.kubevirt.volumes import bus_of
from hcp.csi.kubevirt.waiting import Late
from hcp.kube import errors as kube
from hcp.kube.resources import DATAVOLUMES, VIRTUALMACHINES, VMIS

log = logging.getLogger(__name__)
Object = dict[str, Any]


class Attaching:
    def __init__(self, infra: Infra) -> None:
        self._infra = infra

    async def publish(
        self,
        handle: str,
        node: str,
        shared: bool,
        context: Mapping[str, str],
        asked: Container[str] | None = None,
    ) -> None:
        """Ends when the guest can see the disk, and keeps it. A machine is called like its node.

        `asked` are all nodes that shall have this volume, where that is known: others that were promised it once and
        never got it are forgotten.
        """
        volume = await self._infra.volume(handle)
        if volume is None:
            raise NotFound(f"There is no volume {handle}")
        machines = await self._infra.machines()
        machine = machines.get(node)
        if machine is None or not machine.exists:
            raise NotFound(f"There is no machine {node} in this cluster")
        holders = _holders(volume, handle, node, machines, asked)
        if holders and not (shared and objects.shared(volume)):
            raise FailedPrecondition(f"The volume {handle} is still attached to {', '.join(holders)}")
        if not machine.has(handle):
            if machine.going:
                raise FailedPrecondition(f"The machine {node} is being removed")
            if _count(machine) >= hotplug.MOST_PER_NODE:
                raise ResourceExhausted(f"The machine {node} has {hotplug.MOST_PER_NODE} volumes, and takes no more")
        volume = await self._write_down(volume, (*holders, node))
        if not machine.wants(handle):
            if machine.holds(handle):
                # It is on its way out; plugging it in now would be refused, or undone a moment later.
                await self._gone(handle, node)
            await self._plug(node, "addvolume", hotplug.add_options(handle, bus_of(context)))
        await self._there(handle, node)

    async def unpublish(self, handle: str, node: str) -> None:
        """From one machine, or from all when none is named. A machine that is gone has nothing any more."""
        machines = await self._infra.machines()
        for name in (node,) if node else sorted(machines):
            machine = machines.get(name)
            if machine is not None:
                await self._unplug(machine, handle, name)
        volume = await self._infra.volume(handle)
        if volume is None:
            return
        left = tuple(name for name in objects.published_to(volume) if node and name != node)
        await self._write_down(volume, left)

    async def _unplug(self, machine: hotplug.Machine, handle: str, name: str) -> None:
        if not machine.has(handle) or not _pluggable(machine, handle):
            return  # or a disk of the machine itself, which is nothing of ours
        if machine.wants(handle):
            await self._plug(name, "removevolume", hotplug.remove_options(handle))
        await self._unwanted(handle, name)
        await self._gone(handle, name)

    async def _plug(self, node: str, action: str, options: Object) -> None:
        try:
            await self._infra.plug(node, action, options)
        except (kube.Conflict, kube.Invalid) as error:
            # The machine changed under our look; what it has now decides, not what the answer says.
            machine = await self._infra.machine(node)
            wanted = action == "addvolume"
            if machine is not None and machine.wants(options["name"]) is wanted:
                return
            raise Aborted(f"The machine {node} does not take the change at this moment", cause=error.cause) from error
        except kube.NotFound as error:
            if action == "removevolume":
                return
            raise Unavailable(f"The machine {node} does not take volumes", cause=error.cause) from error

    async def _there(self, handle: str, node: str) -> None:
        def done(vmi: Object | None) -> bool:
            return hotplug.Machine(None, vmi).ready(handle)

        try:
            await self._infra.until(VMIS, node, done)
        except Late as late:
            why = hotplug.Machine(None, late.last).trouble(handle)
            raise Unavailable(f"The volume {handle} is not in machine {node} yet", cause=why) from late

    async def _unwanted(self, handle: str, node: str) -> None:
        """An instance that is made while the specification still has the volume gets it: that has to be over first."""

        def done(vm: Object | None) -> bool:
            return not hotplug.Machine(vm, None).names(handle)

        try:
            await self._infra.until(VIRTUALMACHINES, node, done)
        except Late as late:
            raise Unavailable(f"The machine {node} has not given up volume {handle} yet") from late

    async def _gone(self, handle: str, node: str) -> None:
        def done(vmi: Object | None) -> bool:
            return not hotplug.Machine(None, vmi).holds(handle)

        try:
            await self._infra.until(VMIS, node, done)
        except Late as late:
            why = hotplug.Machine(None, late.last).trouble(handle)
            raise Unavailable(f"The machine {node} has not let go of volume {handle} yet", cause=why) from late

    async def _write_down(self, volume: Object, names: tuple[str, ...]) -> Object:
        """Who has it, on the volume itself; who is second in this is told to ask again.

        CDI writes to the same object: only another promise than the one that was looked at is in the way.
        """
        before, name = objects.published_to(volume), volume["metadata"]["name"]
        while before != names:
            try:
                return await self._replace(volume, names)
            except kube.Conflict as error:
                found = await self._infra.volume(name)
                if found is None or objects.published_to(found) != before:
                    raise Aborted(f"The volume {name} is being changed by somebody else", hint="Ask again.") from error
                volume = found
        return volume

    async def _replace(self, volume: Object, names: tuple[str, ...]) -> Object:
        body = {
            "metadata": {
                "annotations": {MARK_CSI_PUBLISHED: ",".join(names) or None},
                "resourceVersion": volume["metadata"]["resourceVersion"],
            }
        }
        return await self._infra.client.patch(DATAVOLUMES, volume["metadata"]["name"], self._infra.namespace, body)


def _holders(
    volume: Object, handle: str, node: str, machines: Mapping[str, hotplug.Machine], asked: Container[str] | None
) -> tuple[str, ...]:
    """Other machines that have it, or were promised it."""
    has = {name for name, one in machines.items() if one.has(handle)}
    promised = {name for name in objects.published_to(volume) if name in machines and (asked is None or name in asked)}
    return tuple(sorted((has | promised) - {node}))


def _count(machine: hotplug.Machine) -> int:
    return sum(1 for one in at(machine.vm, "spec.template.spec.volumes") or () if _hotplugged(one))


def _hotplugged(volume: Mapping[str, Any]) -> bool:
    return bool(at(volume, "dataVolume.hotpluggable") or at(volume, "persistentVolumeClaim.hotpluggable"))


def _pluggable(machine: hotplug.Machine, handle: str) -> bool:
    """Not yet in the specification, or there as something that was plugged in."""
    found = [one for one in at(machine.vm, "spec.template.spec.volumes") or () if one.get("name") == handle]
    return all(_hotplugged(one) for one in found)
