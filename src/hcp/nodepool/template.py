"""The machine template of a pool: which VM the KubeVirt provider makes.

The template's name is a hash of its content, so any change of what is built here replaces every VM of every pool.
Change it only on purpose. A default that came later than the first release is left out of a template that machines
already run by (see `choose_template`): an upgrade of the operator replaces nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hcp.api import defaults
from hcp.api.names import (
    ANNOTATION_NODEPOOL,
    ANNOTATION_TERMINATION_GRACE,
    LABEL_INFRA_ID,
    LABEL_KUBEVIRT_RHCOS,
    LABEL_NODEPOOL_NAME,
)
from hcp.api.paths import at
from hcp.errors import HcpError
from hcp.ignition.hashes import hash_simple, limited_name
from hcp.nodepool.patching import ROOT_DISK, patched
from hcp.nodepool.validation import MAX_DEVICES
from hcp.runtime import durations

DISK = ROOT_DISK
# Minutes: pods that were not drained, and services, end in good order even on a busy machine. KubeVirt's own is 30 s.
GRACE_SECONDS = 300
LONGEST_GRACE = 86400
_LOCAL_VOLUMES = (
    "private,public,sockets,virt-bin-share-dir,libvirt-runtime,ephemeral-disks,container-disks,hotplug-disks"
)


@dataclass(frozen=True)
class TemplateInput:
    """What a template depends on."""

    node_pool: str
    infra_id: str
    platform: Mapping[str, Any]
    source: Mapping[str, Any]
    infra_namespace: str = ""
    topology_spread: bool = True
    patches: tuple[str, ...] = field(default=())
    # Seconds a machine has to shut down; None leaves it to KubeVirt, as templates did before there was a default.
    grace: int | None = GRACE_SECONDS


def machine_template_spec(given: TemplateInput) -> dict[str, Any]:
    """``spec`` of the KubevirtMachineTemplate, patches applied."""
    vm = patched(_virtual_machine_template(given), given.patches)
    return {
        "template": {
            "spec": {"virtualMachineBootstrapCheck": {"checkStrategy": "none"}, "virtualMachineTemplate": vm},
        }
    }


def template_name(node_pool: str, spec: Mapping[str, Any]) -> str:
    """The name that changes exactly when the template does."""
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    return limited_name(node_pool, hash_simple(text.encode()), 253)


def grace_seconds(text: str) -> int:
    """Seconds that the annotation asks for; 0 ends machines at once."""
    seconds = durations.parse(text)
    if seconds is None or not 0 <= seconds <= LONGEST_GRACE:
        raise HcpError(
            f"annotation {ANNOTATION_TERMINATION_GRACE} is {text!r}; write a duration up to 24h, such as 10m or 90s"
        )
    return math.ceil(seconds)


def choose_template(given: TemplateInput, asked: str | None, in_use: str) -> tuple[str, dict[str, Any]]:
    """Name and spec of the template; ``asked`` is the grace period somebody wrote down, ``in_use`` names the template
    that the pool's machines are made of now."""
    if asked is not None:
        given = replace(given, grace=grace_seconds(asked))
    elif in_use:
        older = machine_template_spec(replace(given, grace=None))
        if template_name(given.node_pool, older) == in_use:
            return in_use, older
    spec = machine_template_spec(given)
    return template_name(given.node_pool, spec), spec


def machine_template(name: str, namespace: str, node_pool: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The whole object; ``node_pool`` is ``namespace/name``."""
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "KubevirtMachineTemplate",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {ANNOTATION_NODEPOOL: node_pool},
            "labels": {LABEL_NODEPOOL_NAME: node_pool.partition("/")[2][:63].rstrip("-.")},
        },
        "spec": dict(spec),
    }


def _labels(given: TemplateInput) -> dict[str, str]:
    return {LABEL_NODEPOOL_NAME: given.node_pool, LABEL_INFRA_ID: given.infra_id}


def _virtual_machine_template(given: TemplateInput) -> dict[str, Any]:
    metadata: dict[str, Any] = {"labels": _labels(given)}
    if given.infra_namespace:
        metadata["namespace"] = given.infra_namespace
    attach_default = given.platform.get("attachDefaultNetwork", True) is not False
    annotations = {"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": _LOCAL_VOLUMES}
    if attach_default:
        annotations["kubevirt.io/allow-pod-bridge-network-live-migration"] = ""
    return {
        "metadata": metadata,
        "spec": {
            "runStrategy": "Always",
            "dataVolumeTemplates": [_data_volume_template(given)],
            "template": {
                "metadata": {"labels": _labels(given), "annotations": annotations},
                "spec": _instance_spec(given, attach_default),
            },
        },
    }


def _data_volume_template(given: TemplateInput) -> dict[str, Any]:
    return {
        "metadata": {"name": DISK, "labels": {LABEL_KUBEVIRT_RHCOS: "true"}},
        "spec": {"source": dict(given.source), "storage": root_storage(given.platform)},
    }


def root_storage(platform: Mapping[str, Any]) -> dict[str, Any]:
    """The storage request of the root disk, also used for the boot image cache."""
    persistent = at(platform, "rootVolume.persistent") or {}
    storage: dict[str, Any] = {
        "resources": {"requests": {"storage": str(persistent.get("size") or defaults.ROOT_SIZE)}}
    }
    if persistent.get("accessModes"):
        storage["accessModes"] = list(persistent["accessModes"])
    if persistent.get("storageClass"):
        storage["storageClassName"] = persistent["storageClass"]
    if persistent.get("volumeMode"):
        storage["volumeMode"] = persistent["volumeMode"]
    return storage


def _instance_spec(given: TemplateInput, attach_default: bool) -> dict[str, Any]:
    platform = given.platform
    interfaces: list[dict[str, Any]] = []
    networks: list[dict[str, Any]] = []
    if attach_default:
        interfaces.append({"name": "default", "bridge": {}})
        networks.append({"name": "default", "pod": {}})
    for number, network in enumerate(platform.get("additionalNetworks") or [], start=1):
        name = f"iface{number}_{network['name'].replace('/', '-')}"
        interfaces.append({"name": name, "bridge": {}})
        networks.append({"name": name, "multus": {"networkName": network["name"]}})
    devices: dict[str, Any] = {
        "disks": [{"name": DISK, "disk": {"bus": "virtio"}}],
        "interfaces": interfaces,
    }
    if (platform.get("networkInterfaceMultiqueue") or "Enable") == "Enable":
        devices["networkInterfaceMultiqueue"] = True
    if platform.get("hostDevices"):
        devices["hostDevices"] = host_devices(platform["hostDevices"])
    spec: dict[str, Any] = {
        "evictionStrategy": "External",
        "domain": {**_compute(platform.get("compute") or {}), "devices": devices},
        "networks": networks,
        "volumes": [{"name": DISK, "dataVolume": {"name": DISK}}],
    }
    if given.grace is not None:
        spec["terminationGracePeriodSeconds"] = given.grace
    if platform.get("nodeSelector"):
        spec["nodeSelector"] = dict(platform["nodeSelector"])
    if given.topology_spread:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {LABEL_NODEPOOL_NAME: given.node_pool}},
            }
        ]
    else:
        spec["affinity"] = _anti_affinity(given.node_pool)
    return spec


def _compute(compute: Mapping[str, Any]) -> dict[str, Any]:
    memory, cores = str(compute.get("memory") or defaults.MEMORY), int(compute.get("cores") or defaults.CORES)
    if compute.get("qosClass") == "Guaranteed":
        amounts = {"memory": memory, "cpu": str(cores)}
        return {"resources": {"requests": dict(amounts), "limits": dict(amounts)}}
    return {"memory": {"guest": memory}, "cpu": {"cores": cores}}


def host_devices(devices: list[Mapping[str, Any]]) -> list[dict[str, str]]:
    """One entry per device; names count over all kinds so that they stay unique."""
    if sum(int(device.get("count") or 1) for device in devices) > MAX_DEVICES:
        raise HcpError(f"more than {MAX_DEVICES} host devices for one machine")
    names = [device["deviceName"] for device in devices for _ in range(int(device.get("count") or 1))]
    return [{"name": f"hostdevice-{number}", "deviceName": name} for number, name in enumerate(names, start=1)]


def _anti_affinity(node_pool: str) -> dict[str, Any]:
    term = {
        "labelSelector": {"matchExpressions": [{"key": LABEL_NODEPOOL_NAME, "operator": "In", "values": [node_pool]}]},
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
