"""A management cluster with Cluster API's real managers, and by hand what KubeVirt and a kubelet would do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml
from tests.support import crds as crds_support
from tests.support.api_server import ApiServer
from tests.support.definitions import VIRTUALIZATION, real
from tests.support.node_pools import Object, data
from tests.support.security.managers import COMPONENTS, followers

from hcp import payload
from hcp.api import generate
from hcp.controlplane import capi
from hcp.hostedcluster.translate import params
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.operator.capi import definition

HCP = Path(sys.executable).parent / "hcp"


async def install(client: Client, server: ApiServer, home: str) -> None:
    """All kinds, what `hcp install` makes, and a namespace for HostedClusters."""
    patched = [
        definition(component, yaml.safe_load(path.read_text()))
        for component, folder in payload.ensure(list(COMPONENTS)).items()
        for path in sorted((folder / "manifests" / "crds").glob("*.yaml"))
    ]
    await crds_support.install(client, [*generate.crds(), *patched, *real(k.ROUTES, *VIRTUALIZATION)])
    command = [str(HCP), "install", "--image=x.example.com/hcp:1", "--development"]
    subprocess.run([*command, f"--kubeconfig={server.kubeconfig}"], check=True, capture_output=True)
    await client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}})


async def known_to_cluster_api(client: Client, cluster: Object, guest: Path, *, credentials: bool = False) -> None:
    """What the pass over the HostedCluster tells Cluster API; `guest` is the kubeconfig of the hosted API."""
    p = params(cluster)
    content = data(value=guest.read_text())
    metadata = {"name": f"{p.infra_id}-kubeconfig", "namespace": p.namespace}
    ready = {"ready": True, "initialized": True, "externalManagedControlPlane": True, "version": "1.36.3"}
    await client.patch(k.HOSTEDCONTROLPLANES, p.name, p.namespace, {"status": ready}, subresource="status")
    for obj in (
        *capi.bindings(p),
        capi.secret_followers(p, followers()),
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": content},
        capi.kubevirt_cluster(p, credentials=credentials),
    ):
        await client.apply(obj)
    await client.patch(k.KUBEVIRTCLUSTERS, p.infra_id, p.namespace, {"status": {"ready": True}}, subresource="status")
    await client.apply(capi.cluster(p))


async def boot(infra: Client, namespace: str, name: str, guest: Client | None = None) -> str:
    """What KubeVirt and the kubelet do when a VM shall run; gives the instance."""
    vm = await infra.get(k.VIRTUALMACHINES, name, namespace)
    labels = vm["spec"]["template"]["metadata"]["labels"]
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    made = await infra.create(
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": metadata,
            "spec": vm["spec"]["template"]["spec"],
        }
    )
    told: list[Object] = [{"type": "Ready", "status": "True"}, {"type": "LiveMigratable", "status": "True"}]
    running: Object = {"phase": "Running", "interfaces": [{"ipAddress": "10.9.9.9"}], "conditions": told}
    await infra.patch(k.VMIS, name, namespace, {"status": running})
    body = {"status": {"ready": True, "created": True, "conditions": told}}
    await infra.patch(k.VIRTUALMACHINES, name, namespace, body, subresource="status")
    await (guest or infra).apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    await report(guest or infra, name, ready=True)
    return str(made["metadata"]["uid"])


async def report(guest: Client, name: str, *, ready: bool) -> None:
    """What is known of a node, since long ago."""
    rest = {"reason": "x", "message": "x", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    pressures = [{"type": f"{one}Pressure", "status": "False", **rest} for one in ("Memory", "Disk", "PID")]
    told = [{"type": "Ready", "status": str(ready), **rest}, *pressures]
    await guest.patch(k.NODES, name, None, {"status": {"conditions": told}}, subresource="status")
