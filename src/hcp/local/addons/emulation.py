"""What machines on an emulated processor go without: instructions that QEMU has, but slowly."""

from __future__ import annotations

import json

from hcp.api.manifests import Object

NAME = "hcp-local-emulated-processors"
# Kernels and programs that see the first two copy and clear memory byte by byte, which a processor does fast and QEMU
# does not; with the last every look into page tables goes one level deeper. A program starts a third faster without.
SLOW = ("erms", "fsrm", "la57")
# The same for whoever starts QEMU by hand.
QEMU_PROCESSOR = ",".join(["max", *(f"{name}=off" for name in SLOW)])


def without_slow_instructions() -> list[Object]:
    """Machines that ask for no processor of their own; KubeVirt calls it `host-model` before it makes them. It can be
    told one model for all, but no features for all, and older models lack new instructions that programs need, too.
    """
    common = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": NAME}}
    machines = {"apiGroups": ["kubevirt.io"], "apiVersions": ["*"], "resources": ["virtualmachineinstances"]}
    asked = "object.spec.domain.?cpu"
    unasked = f'{asked}.model.orValue("") == "host-model" && !{asked}.features.hasValue()'
    features = [{"name": name, "policy": "disable"} for name in SLOW]
    patch = f'[JSONPatch{{op: "add", path: "/spec/domain/cpu/features", value: {json.dumps(features)}}}]'
    policy = {
        "matchConstraints": {"resourceRules": [{**machines, "operations": ["CREATE"]}]},
        "matchConditions": [{"name": "any-processor", "expression": unasked}],
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
    return [
        {**common, "kind": "MutatingAdmissionPolicy", "spec": policy},
        {**common, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": NAME}},
    ]
