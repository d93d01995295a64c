"""Which machines have a volume, and how one gets or loses it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.names import LABEL_INFRA_ID
from hcp.api.paths import at, labels_of
from hcp.csi.kubevirt.handles import serial

Object = dict[str, Any]
# What one machine takes beside its own disks. QEMU's SCSI controller takes far more; each volume costs a pod and a
# few seconds of the infra cluster, and Kubernetes spreads pods over machines by this number.
MOST_PER_NODE = 64
ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Machine:
    """A virtual machine of this cluster as the infra cluster shows it; either part may be gone."""

    vm: Mapping[str, Any] | None
    vmi: Mapping[str, Any] | None

    @property
    def exists(self) -> bool:
        return self.vm is not None

    @property
    def going(self) -> bool:
        return self.vm is None or bool(self.vm["metadata"].get("deletionTimestamp"))

    @property
    def running(self) -> bool:
        return self.vmi is not None and at(self.vmi, "status.phase") == "Running"

    def wants(self, handle: str) -> bool:
        """Whether the volume is in the machine's specification, or asked to be put there."""
        if self.names(handle):
            return not self._asked(handle, "removeVolumeOptions")
        return self._asked(handle, "addVolumeOptions")

    def names(self, handle: str) -> bool:
        """Whether the specification has it, whatever was asked for since."""
        return any(_is(volume, handle) for volume in at(self.vm, "spec.template.spec.volumes") or ())

    def _asked(self, handle: str, field: str) -> bool:
        """virt-api notes it in the status; virt-controller puts it into the specification a moment later."""
        return any(at(one, f"{field}.name") == handle for one in at(self.vm, "status.volumeRequests") or ())

    def holds(self, handle: str) -> bool:
        """Whether the running machine has the volume, or is about to get or to lose it."""
        if self.vmi is None or at(self.vmi, "status.phase") in ENDED:
            return False
        named = any(_is(volume, handle) for volume in at(self.vmi, "spec.volumes") or ())
        return named or self.status(handle) is not None

    def status(self, handle: str) -> Mapping[str, Any] | None:
        for one in at(self.vmi, "status.volumeStatus") or ():
            if one.get("name") == handle:
                found: Mapping[str, Any] = one
                return found
        return None

    def ready(self, handle: str) -> bool:
        """Whether the guest can see the disk, and keeps it.

        In the phases before, KubeVirt looks for the pod that holds exactly what is plugged in now: another volume that
        comes or goes has that pod replaced, and the disk is taken out again until the next one runs.
        """
        return bool(at(self.status(handle), "phase") == "Ready")

    def trouble(self, handle: str) -> str:
        """Why it does not get ready, in KubeVirt's words."""
        status = self.status(handle)
        said = str(at(status, "message") or at(status, "reason") or at(status, "phase") or "")
        return said or ("the machine is not running" if not self.running else "KubeVirt has not begun")

    def has(self, handle: str) -> bool:
        return self.names(handle) or self.wants(handle) or self.holds(handle)


def _is(volume: Mapping[str, Any], handle: str) -> bool:
    """By its name, and by the claim behind it: whoever plugged it in under another name has it too."""
    claims = (at(volume, "dataVolume.name"), at(volume, "persistentVolumeClaim.claimName"))
    return volume.get("name") == handle or handle in claims


def of_cluster(obj: Mapping[str, Any] | None, infra_id: str) -> bool:
    return obj is not None and labels_of(obj).get(LABEL_INFRA_ID) == infra_id


def machines(vms: Iterable[Object], vmis: Iterable[Object], infra_id: str) -> dict[str, Machine]:
    """By name: everything of this cluster that may hold a volume."""
    by_name = {vm["metadata"]["name"]: vm for vm in vms if of_cluster(vm, infra_id)}
    running = {vmi["metadata"]["name"]: vmi for vmi in vmis if of_cluster(vmi, infra_id)}
    return {name: Machine(by_name.get(name), running.get(name)) for name in {*by_name, *running}}


def add_options(handle: str, bus: str) -> Object:
    """For the machine itself, not its running instance: so the disk is there again after a restart."""
    return {
        "name": handle,
        "disk": {"name": handle, "serial": serial(handle), "disk": {"bus": bus}},
        "volumeSource": {"dataVolume": {"name": handle, "hotpluggable": True}},
    }


def remove_options(handle: str) -> Object:
    return {"name": handle}
