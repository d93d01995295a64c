"""What machines on an emulated processor go without: instructions that QEMU has, but slowly."""

from __future__ import annotations

import json

from hcp.api.manifests import Object
from hcp.local.addons.mutations import on_creation

NAME = "hcp-local-emulated-processors"
# Kernels and programs that see the first two copy and clear memory byte by byte, which a processor does fast and QEMU
# does not; with the last every look into page tables goes one level deeper. A program starts a third faster without.
SLOW = ("erms", "fsrm", "la57")
# The same for whoever starts QEMU by hand.
QEMU_PROCESSOR = ",".join(["max", *(f"{name}=off" for name in SLOW)])


def without_slow_instructions() -> list[Object]:
    """Machines that ask for no processor of their own; KubeVirt calls theirs `host-model`, after this policy was asked.
    It can be told one model for all, but no features for all, and older models lack new instructions, too. Machines
    that say nothing of processors, not even how many, are left alone: hosted clusters have none.
    """
    machines = {"apiGroups": ["kubevirt.io"], "apiVersions": ["*"], "resources": ["virtualmachineinstances"]}
    asked = "object.spec.domain.?cpu"
    unasked = f'{asked}.hasValue() && {asked}.model.orValue("host-model") == "host-model"'
    unasked += f" && !{asked}.features.hasValue()"
    features = [{"name": name, "policy": "disable"} for name in SLOW]
    patch = f'[JSONPatch{{op: "add", path: "/spec/domain/cpu/features", value: {json.dumps(features)}}}]'
    return on_creation(NAME, machines, ("any-processor", unasked), patch)
