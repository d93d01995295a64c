"""A virtual machine after its owner's JSON patch: what we rely on is put back, the rest is held against the rules."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api.paths import at
from hcp.errors import HcpError
from hcp.nodepool.jsonpatch import apply_patch, parse_patch
from hcp.nodepool.patch_rules import MACHINE
from hcp.nodepool.patch_types import check, name_of, refuse, same

ROOT_DISK = "rhcos"
# The KubeVirt provider adds a volume of this name, with what a machine starts from.
_PROVIDERS = "cloudinitvolume"
_BINDINGS = ("bridge", "masquerade", "sriov")


def patched(machine: Mapping[str, Any], patches: Iterable[str]) -> dict[str, Any]:
    """The machine's template with all patches; raises when one of them asks for more than it may."""
    made: Any = machine
    for text in patches:
        made = apply_patch(made, parse_patch(text))
    if made is machine:
        return dict(machine)
    if not isinstance(made, dict) or not isinstance(made.get("spec"), dict):
        raise HcpError("the JSON patch leaves no virtual machine")
    made = _labels_put_back(machine, made)
    check(MACHINE, made, machine, "")
    _whole(machine, made)
    return dict(made)


def _labels_put_back(machine: Mapping[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """Network policies, Services and we ourselves find machines by these; a machine without them is not made."""
    made = copy.deepcopy(made)
    inside = made["spec"].get("template")
    if not isinstance(inside, dict):
        raise refuse("spec.template", "has to be an object")
    for mine, theirs, where in (
        (machine, made, "metadata"),
        (machine["spec"]["template"], inside, "spec.template.metadata"),
    ):
        metadata = theirs.setdefault("metadata", {})
        if not isinstance(metadata, dict):
            raise refuse(where, "has to be an object")
        labels = metadata.setdefault("labels", {})
        if not isinstance(labels, dict):
            raise refuse(f"{where}.labels", "has to be an object with texts")
        labels.update(mine["metadata"]["labels"])
    return made


def _whole(machine: Mapping[str, Any], made: Mapping[str, Any]) -> None:
    """What no single field can tell: the disk a node starts from is there, and all that is named exists."""
    where = "spec.template.spec"
    before, after = machine["spec"]["template"]["spec"], made["spec"]["template"].get("spec")
    if not isinstance(after, dict):
        raise refuse(where, "has to be an object")
    claims = _names(made["spec"].get("dataVolumeTemplates"), "spec.dataVolumeTemplates")
    volumes = _names(after.get("volumes"), f"{where}.volumes")
    root = next(v for v in before["volumes"] if v["name"] == ROOT_DISK)
    if ROOT_DISK not in claims or not any(same(v, root) for v in after["volumes"]):
        raise refuse(f"{where}.volumes", f"has to keep {ROOT_DISK}, the disk a node starts from")
    for volume in after["volumes"]:
        if at(volume, "dataVolume.name") not in claims:
            raise refuse(
                f"{where}.volumes", f"has {volume['name']}, which is none of this machine's dataVolumeTemplates"
            )
    for toleration in after.get("tolerations") or []:
        if not toleration.get("key"):
            raise refuse(f"{where}.tolerations", "has one without a key, which would tolerate everything")
    devices = after.get("domain", {}).get("devices") or {}
    disks = _names(devices.get("disks"), f"{where}.domain.devices.disks")
    if ROOT_DISK not in disks or not set(disks) <= set(volumes):
        raise refuse(
            f"{where}.domain.devices.disks", f"has to have {ROOT_DISK}, and only disks of this machine's volumes"
        )
    interfaces = _names(devices.get("interfaces"), f"{where}.domain.devices.interfaces", several=False)
    if interfaces != [i["name"] for i in before["domain"]["devices"]["interfaces"]]:
        raise refuse(f"{where}.domain.devices.interfaces", "has to have the networks of the NodePool, in their order")
    for interface in devices.get("interfaces") or []:
        if sum(binding in interface for binding in _BINDINGS) != 1:
            raise refuse(f"{where}.domain.devices.interfaces", f"needs exactly one of {', '.join(_BINDINGS)} each")


def _names(elements: Any, where: str, *, several: bool = True) -> list[str]:
    names = [name_of(element) for element in elements or []]
    if "" in names or len(set(names)) != len(names) or _PROVIDERS in names or (several and not names):
        raise refuse(where, "has to have elements with a name each, all different")
    return names
