"""A guest Service of type LoadBalancer as objects of the infra cluster.

The infra Service has no selector; one EndpointSlice per VM and address family holds exactly the address that the
infra cluster gave the VM's first interface, never one that the VM reports. Where we may not read pods, the Service
selects them instead and the infra cluster itself finds the addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hcp.api.names import LABEL_CAPI_CLUSTER_NAME, LABEL_INFRA_ID
from hcp.api.paths import at
from hcp.kubevirt import launchers

LABEL_SERVICE = "cluster.x-k8s.io/tenant-service-name"
LABEL_SERVICE_NAMESPACE = "cluster.x-k8s.io/tenant-service-namespace"
MANAGED_BY = "control-plane-operator.hypershift.openshift.io"
# A condition of Services that Kubernetes knows: the ports that were asked for cannot be had.
PORTS_ERROR = "LoadBalancerPortsError"
FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
_COPIED = (
    "externalTrafficPolicy",
    "internalTrafficPolicy",
    "loadBalancerClass",
    "loadBalancerSourceRanges",
    "sessionAffinity",
    "sessionAffinityConfig",
    "ipFamilyPolicy",
    "allocateLoadBalancerNodePorts",
)


def wanted(service: Mapping[str, Any]) -> bool:
    """Whether a guest Service asks for a load balancer and is not being deleted."""
    metadata = service["metadata"]
    # Where guest and infra are one cluster, our own Services must not be taken for a guest's.
    alive = not metadata.get("deletionTimestamp") and LABEL_SERVICE not in (metadata.get("labels") or {})
    return alive and at(service, "spec.type") == "LoadBalancer"


def infra_name(service: Mapping[str, Any]) -> str:
    """The infra Service's name, made from the guest Service's uid as cloud providers do."""
    return f"a{service['metadata']['uid'].replace('-', '')}"[:32]


def unserved(service: Mapping[str, Any]) -> str:
    """Why no load balancer can lead to this Service; empty when one can."""
    ports = at(service, "spec.ports") or []
    without = [f"{port['port']}/{port.get('protocol', 'TCP')}" for port in ports if not port.get("nodePort")]
    if not without:
        return ""
    return (
        f"Port {', '.join(without)} has no node port, and load balancers of this cluster lead to node ports: "
        "set allocateLoadBalancerNodePorts to true, or name a nodePort"
    )


def infra_service(
    service: Mapping[str, Any],
    namespace: str,
    infra_id: str,
    *,
    selecting: bool = False,
    annotations: Mapping[str, str] = {},
) -> dict[str, Any]:
    """The Service in the infra cluster; its target ports are the guest's node ports.

    `annotations` are the owner's. Nothing that names a port or an address of the infra cluster is taken from the guest:
    it gives its own, for health checks too.
    """
    metadata, spec = service["metadata"], service.get("spec") or {}
    ports = []
    for port in spec.get("ports") or []:
        entry = {
            "name": port.get("name") or f"port-{port['port']}",
            "protocol": port.get("protocol", "TCP"),
            "port": port["port"],
            "targetPort": port["nodePort"],
        }
        if port.get("appProtocol"):
            entry["appProtocol"] = port["appProtocol"]
        ports.append(entry)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": infra_name(service),
            "namespace": namespace,
            "labels": {
                LABEL_SERVICE: metadata["name"][:63],
                LABEL_SERVICE_NAMESPACE: metadata["namespace"],
                LABEL_CAPI_CLUSTER_NAME: infra_id,
                LABEL_INFRA_ID: infra_id,
            },
            **({"annotations": dict(annotations)} if annotations else {}),
        },
        "spec": {
            "type": "LoadBalancer",
            "ports": ports,
            **({"selector": {LABEL_INFRA_ID: infra_id, **launchers.LABELS}} if selecting else {}),
            **{name: spec[name] for name in _COPIED if spec.get(name) is not None},
        },
    }


def serving(instance: Mapping[str, Any]) -> bool:
    """Whether a VM runs and is not going away."""
    status = instance.get("status") or {}
    return status.get("phase") == "Running" and not instance["metadata"].get("deletionTimestamp")


def endpoint_slices(
    service: Mapping[str, Any],
    infra: Mapping[str, Any],
    instances: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    local_nodes: set[str] | None = None,
) -> list[dict[str, Any]]:
    """The slices of one infra Service; ``local_nodes`` limits them to nodes with an endpoint of their own."""
    families: Sequence[str] = at(infra, "spec.ipFamilies") or ["IPv4"]
    ports = [
        {"name": port["name"], "protocol": port.get("protocol", "TCP"), "port": port["targetPort"]}
        for port in infra_service(service, "", "")["spec"]["ports"]
    ]
    slices = []
    pods = list(pods)
    for instance in sorted(instances, key=lambda item: str(item["metadata"]["name"])):
        name = instance["metadata"]["name"]
        addresses = launchers.addresses(instance, launchers.launcher(instance, pods))
        for family in families:
            if family not in addresses or (local_nodes is not None and name not in local_nodes):
                continue
            slices.append(_slice(infra, instance, family, addresses[family], ports))
    return slices


def _slice(
    infra: Mapping[str, Any], instance: Mapping[str, Any], family: str, address: str, ports: list[dict[str, Any]]
) -> dict[str, Any]:
    ready = serving(instance)
    service, metadata = infra["metadata"], instance["metadata"]
    endpoint: dict[str, Any] = {
        "addresses": [address],
        "conditions": {"ready": ready, "serving": ready, "terminating": bool(metadata.get("deletionTimestamp"))},
    }
    node = at(instance, "status.nodeName")
    if node:
        endpoint["nodeName"] = node
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{service['name']}-{metadata['name']}-{family.lower()}",
            "namespace": service["namespace"],
            "labels": {
                "kubernetes.io/service-name": service["name"],
                "endpointslice.kubernetes.io/managed-by": MANAGED_BY,
                **{key: value for key, value in (service.get("labels") or {}).items() if key == LABEL_INFRA_ID},
            },
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "name": service["name"],
                    "uid": service.get("uid", ""),
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "addressType": family,
        "endpoints": [endpoint],
        "ports": ports,
    }
