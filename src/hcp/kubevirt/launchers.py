"""The addresses of a virtual machine as the infra cluster gave them to its pod.

What a machine says of itself (the guest agent, which root in it controls) is shown in the VMI's status and is not used
for anything that traffic follows: a tenant could name the address of somebody else's pod.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api.paths import annotations_of, at

SELECTOR = "kubevirt.io=virt-launcher"
LABELS = {"kubevirt.io": "virt-launcher"}
NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status"
# On every pod of OVN-Kubernetes, which lets a machine keep its address when it moves.
FOLLOWING = "k8s.ovn.org/pod-networks"
ENDED = ("Succeeded", "Failed")


def slim(pod: dict[str, Any]) -> dict[str, Any]:
    """All that is read of such a pod: they are large, and there is one for each machine."""
    metadata, status = pod.get("metadata") or {}, pod.get("status") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "labels", "ownerReferences", "deletionTimestamp")
    noted = metadata.get("annotations") or {}
    annotations = {NETWORK_STATUS: noted.get(NETWORK_STATUS)} | ({FOLLOWING: ""} if FOLLOWING in noted else {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {key: metadata[key] for key in kept if key in metadata} | {"annotations": annotations},
        "spec": {"nodeName": at(pod, "spec.nodeName")},
        "status": {key: status[key] for key in ("phase", "podIPs") if key in status},
    }


def launcher(instance: Mapping[str, Any], pods: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The pod a VM runs in: made for it by KubeVirt, alive, and on the VM's node (in a migration there are two)."""
    uid, node = instance["metadata"].get("uid"), at(instance, "status.nodeName")
    for pod in pods:
        owners = pod["metadata"].get("ownerReferences") or []
        ours = any(owner.get("kind") == "VirtualMachineInstance" and owner.get("uid") == uid for owner in owners)
        alive = at(pod, "status.phase") not in ENDED
        if uid and ours and alive and at(pod, "spec.nodeName") == node:
            return pod
    return None


def address_follows(instance: Mapping[str, Any], pod: Mapping[str, Any] | None) -> bool:
    """Whether a VM keeps its address when it moves: not one that has that of its pod, where each pod gets another."""
    interfaces = at(instance, "spec.domain.devices.interfaces") or []
    multus = _first_network(instance).get("multus") or {}
    if not interfaces or "bridge" not in interfaces[0] or (multus and not multus.get("default")):
        return True
    return FOLLOWING in annotations_of(pod)


def addresses(instance: Mapping[str, Any], pod: Mapping[str, Any] | None) -> dict[str, str]:
    """The address per family (``IPv4``, ``IPv6``) of a VM's first interface; empty while its pod has none."""
    if pod is None:
        return {}
    network = _first_network(instance)
    multus = network.get("multus") or {}
    if multus and not multus.get("default"):
        name = str(multus.get("networkName") or "")
        texts = _attached(pod, name if "/" in name else f"{instance['metadata'].get('namespace')}/{name}")
    else:
        texts = [str(entry.get("ip") or "") for entry in at(pod, "status.podIPs") or []]
    result: dict[str, str] = {}
    for text in texts:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            continue
        if not (address.is_link_local or address.is_loopback or address.is_multicast or address.is_unspecified):
            result.setdefault(f"IPv{address.version}", str(address))
    return result


def _first_network(instance: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = instance.get("spec") or {}
    interfaces = at(spec, "domain.devices.interfaces") or []
    networks = {network.get("name"): network for network in spec.get("networks") or []}
    first: Mapping[str, Any] = networks.get(interfaces[0].get("name"), {}) if interfaces else {}
    return first


def _attached(pod: Mapping[str, Any], name: str) -> list[str]:
    """The addresses that multus gave this pod on a network."""
    text = annotations_of(pod).get(NETWORK_STATUS)
    try:
        entries = json.loads(text or "[]")
    except ValueError:
        return []
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name:
            return [str(address) for address in entry.get("ips") or []]
    return []
