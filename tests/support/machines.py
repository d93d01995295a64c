"""Machines, their VMs and the pods of those, as Cluster API and KubeVirt would make them."""

from __future__ import annotations

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
    }


def instance(namespace: str, address: str) -> Object:
    first = {"name": "default", "ipAddress": address, "ipAddresses": [address, "10.132.0.1"]}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": f"vm-{namespace}",
            "namespace": f"{namespace}-demo",
            "labels": {"hypershift.openshift.io/infra-id": "demo-abcde"},
        },
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
