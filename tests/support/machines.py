"""Machines, their VMs and the pods of those, as Cluster API and KubeVirt would make them."""

from __future__ import annotations

from typing import Any

from tests.support.node_pools import Object

from hcp.kube import Client
from hcp.kube import resources as r


def machine(namespace: str) -> Object:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "Machine",
        "metadata": {
            "name": f"vm-{namespace}",
            "namespace": f"{namespace}-demo",
            "labels": {"cluster.x-k8s.io/cluster-name": "demo-abcde"},
            "annotations": {"hypershift.openshift.io/nodePool": f"{namespace}/demo"},
        },
        "spec": {
            "clusterName": "demo-abcde",
            "bootstrap": {"dataSecretName": "user-data"},
            "infrastructureRef": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
                "kind": "KubevirtMachine",
                "name": f"vm-{namespace}",
            },
        },
    }


def virtual_machine(name: str, namespace: str, **metadata: Any) -> Object:
    """As small as KubeVirt accepts one."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"devices": {}}}}},
    }


def instance(namespace: str, address: str) -> Object:
    """Whoever may write a VMI writes its status too: KubeVirt keeps no status of its own for it."""
    first = {"name": "default", "ipAddress": address, "ipAddresses": [address, "10.132.0.1"]}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": f"vm-{namespace}",
            "namespace": f"{namespace}-demo",
            "labels": {"hypershift.openshift.io/infra-id": "demo-abcde"},
        },
        "spec": {"domain": {"devices": {}}},
        "status": {"phase": "Running", "nodeName": "infra-1", "interfaces": [first, {"ipAddress": "10.132.0.1"}]},
    }


def launcher(vm: Object) -> Object:
    """The pod that KubeVirt makes for a VM."""
    metadata = vm["metadata"]
    owner = {"apiVersion": vm["apiVersion"], "kind": vm["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"virt-launcher-{metadata['name']}",
            "namespace": metadata["namespace"],
            "labels": {**metadata["labels"], "kubevirt.io": "virt-launcher"},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": "infra-1", "containers": [{"name": "compute", "image": "none"}]},
    }


async def run_launcher(client: Client, vm: Object, *addresses: str) -> None:
    """As a kubelet tells that the pod runs, and under which addresses."""
    name, ns = f"virt-launcher-{vm['metadata']['name']}", vm["metadata"]["namespace"]
    places = [{"ip": address} for address in addresses]
    status = {"phase": "Running", "podIP": addresses[0], "podIPs": places}
    await client.patch(r.PODS, name, ns, {"status": status}, subresource="status")
