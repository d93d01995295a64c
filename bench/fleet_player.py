"""Plays what a fleet has besides the operator: nobody runs here, statuses are written as if somebody did.

    python bench/fleet_player.py --management KUBECONFIG --guests KUBECONFIG --clusters 100

In the management cluster: load balancers get their address, Deployments and StatefulSets of control planes are ready,
MachineDeployments get Machines, KubevirtMachines, VirtualMachineInstances and launcher pods. In guests: each machine
asks for its two certificates and, once the first is approved, joins as a Ready Node with a konnectivity agent; our
parts there are available. One kubelet answers for all nodes when kube-apiserver asks for a log.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime as dt
import json
import ssl
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.fleet_front import LABEL, NAMESPACE, address_of, prefix_of
from tests.support.certificates import request_for

from hcp import pki
from hcp.api.names import LABEL_CONTROL_PLANE_NAMESPACE, LABEL_INFRA_ID
from hcp.api.paths import at
from hcp.guest.csr import CLIENT_SIGNER, SERVING_SIGNER
from hcp.guest.nodes import provider_id
from hcp.kube import Client, ClusterConfig, load_config
from hcp.kube import resources as k
from hcp.kube.errors import AlreadyExists, Call
from hcp.runtime import Controller, Informer, setup_logging
from hcp.runtime.conditions import is_true
from hcp.runtime.controller import Result

Object = dict[str, Any]
COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
SCHEDULED = (
    *("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled"),
    *("numberReady", "numberAvailable"),
)
STAMP = "2026-01-01T00:00:00Z"
# Tokens that the guests' server knows (fleet_world.py): of a machine that boots, and of each node.
BOOTSTRAP_TOKEN = "bootstrap"


def cluster_number(hosted: str) -> int:
    return int(hosted.removeprefix(f"{NAMESPACE}-c")[:4])


def condition(kind: str) -> Object:
    return {"type": kind, "status": "True", "reason": "Played", "message": "played", "lastTransitionTime": STAMP}


class Player:
    """Everybody else."""

    def __init__(self, management: Client, guests: Client, anyone: Client, kubelet_port: int) -> None:
        self._m, self._g, self._anyone = management, guests, anyone
        self._kubelet_port = kubelet_port
        ours = LABEL_CONTROL_PLANE_NAMESPACE
        self._services = Informer(management, k.SERVICES, labels=ours)
        self._workloads = [(r, Informer(management, r, labels=ours)) for r in (k.DEPLOYMENTS, k.STATEFULSETS)]
        self._pools = Informer(management, k.MACHINEDEPLOYMENTS)
        self._templates = Informer(management, k.KUBEVIRTMACHINETEMPLATES)
        self._machines = Informer(management, k.MACHINES)
        self._nodes = Informer(guests, k.NODES)
        self._nodes.add_index("guest", lambda o: [(o["metadata"].get("labels") or {}).get(LABEL, "")])
        self._requests = Informer(guests, k.CSRS)
        self._parts = [(r, Informer(guests, r)) for r in (k.DAEMONSETS, k.DEPLOYMENTS, k.STATEFULSETS)]
        self._approved: dict[str, asyncio.Event] = {}

    async def run(self) -> None:
        controllers = [self._controller("services", self._service, self._services)]
        for resource, informer in self._workloads:
            controllers.append(self._controller(resource.plural, self._workload(resource, informer), informer))
        controllers.append(self._controller("pools", self._pool, self._pools))
        self._requests.add_listener(self._answered)
        for resource, informer in self._parts:
            made = self._controller(f"guest {resource.plural}", self._part(resource, informer), informer)
            self._nodes.add_listener(self._counting(made, informer))
            controllers.append(made)
        informers = [self._services, self._pools, self._templates, self._machines, self._nodes, self._requests]
        informers += [informer for _, informer in (*self._workloads, *self._parts)]
        for informer in informers:
            await informer.start()
        await asyncio.gather(*(informer.wait_synced() for informer in informers))
        await asyncio.gather(*(controller.run() for controller in controllers))

    @staticmethod
    def _controller(name: str, reconcile: Any, informer: Informer) -> Controller:
        made = Controller(name, reconcile, workers=8, max_delay=2.0)
        made.watch(informer)
        return made

    def _counting(self, controller: Controller, informer: Informer) -> Any:
        """A further node is a further pod of each DaemonSet."""

        def listener(old: Object | None, new: Object | None) -> None:
            if old is None or new is None:
                guest = ((new or old or {})["metadata"].get("labels") or {}).get(LABEL, "")
                for live in informer.list(f"{guest}-kube-system"):
                    controller.enqueue(f"{guest}-kube-system/{live['metadata']['name']}")

        return listener

    # the management cluster

    async def _service(self, key: str) -> None:
        live = self._services.get_key(key)
        if live is None or at(live, "spec.type") != "LoadBalancer" or at(live, "status.loadBalancer.ingress"):
            return
        hosted = live["metadata"]["namespace"]
        status = {"loadBalancer": {"ingress": [{"ip": address_of(cluster_number(hosted))}]}}
        await self._m.patch(k.SERVICES, live["metadata"]["name"], hosted, {"status": status}, subresource="status")

    def _workload(self, resource: k.Resource, informer: Informer) -> Any:
        async def reconcile(key: str) -> None:
            live = informer.get_key(key)
            if live is None:
                return
            meta, wanted = live["metadata"], int(live["spec"].get("replicas", 1))
            if (at(live, "status.observedGeneration"), at(live, "status.readyReplicas") or 0) == (
                meta["generation"],
                wanted,
            ):
                return
            status: Object = {"observedGeneration": meta["generation"], **dict.fromkeys(COUNTS, wanted)}
            if resource is k.DEPLOYMENTS:
                status["conditions"] = [{**condition("Available"), "lastUpdateTime": STAMP}]
            await self._m.patch(resource, meta["name"], meta["namespace"], {"status": status}, subresource="status")

        return reconcile

    async def _pool(self, key: str) -> Result | None:
        live = self._pools.get_key(key)
        if live is None:
            return None
        meta, wanted = live["metadata"], int(live["spec"].get("replicas") or 0)
        names = [f"{meta['name']}-{number}" for number in range(wanted)]
        known = [n for n in names if self._machines.get(n, meta["namespace"]) is not None]
        await asyncio.gather(*(self._machine(live, name) for name in names if name not in known))
        status = at(live, "status") or {}
        if (status.get("observedGeneration"), status.get("availableReplicas")) != (meta["generation"], wanted):
            body: Object = {"observedGeneration": meta["generation"], **dict.fromkeys(COUNTS, wanted)}
            body |= {"unavailableReplicas": 0, "phase": "Running", "conditions": [condition("Ready")]}
            where = (k.MACHINEDEPLOYMENTS, meta["name"], meta["namespace"])
            await self._m.patch(*where, {"status": body}, subresource="status")
        return None

    async def _machine(self, pool: Object, name: str) -> None:
        """A machine of Cluster API, its VM as KubeVirt runs it, and the node it becomes."""
        meta, template = pool["metadata"], pool["spec"]["template"]
        hosted, infra_id = meta["namespace"], pool["spec"]["clusterName"]
        number = cluster_number(hosted)
        index = int(name.rpartition("-")[2])
        address = f"10.{100 + number // 50}.{number % 50 * 5 + index // 200}.{index % 200 + 10}"
        labels, notes = dict(template["metadata"]["labels"]), dict(template["metadata"]["annotations"])
        reference = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "KubevirtMachine", "name": name}
        spec = {**template["spec"], "infrastructureRef": {**reference, "namespace": hosted}}
        named = {"name": name, "namespace": hosted, "annotations": notes}
        await self._create(
            self._m,
            {
                "apiVersion": "cluster.x-k8s.io/v1beta1",
                "kind": "Machine",
                "metadata": {**named, "labels": {**labels, "cluster.x-k8s.io/cluster-name": infra_id}},
                "spec": {**spec, "providerID": provider_id(name)},
            },
        )
        source = self._templates.get(template["spec"]["infrastructureRef"]["name"], hosted)
        vm = at(source, "spec.template.spec") or {}
        await self._create(
            self._m,
            {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
                "kind": "KubevirtMachine",
                "metadata": {**named, "labels": {"cluster.x-k8s.io/cluster-name": infra_id}},
                "spec": {**vm, "providerID": provider_id(name)},
            },
        )
        first = {"name": "default", "ipAddress": address, "ipAddresses": [address]}
        instance = await self._create(
            self._m,
            {
                "apiVersion": "kubevirt.io/v1",
                "kind": "VirtualMachineInstance",
                "metadata": {"name": name, "namespace": hosted, "labels": {LABEL_INFRA_ID: infra_id}},
                "spec": {"domain": {"devices": {}}},
                "status": {"phase": "Running", "nodeName": "infra-0", "interfaces": [first]},
            },
        )
        await self._launcher(instance, hosted, name, infra_id, address)
        await self._joins(number, name, address)
        status = {
            "nodeRef": {"apiVersion": "v1", "kind": "Node", "name": name},
            "phase": "Running",
            "addresses": [{"type": "InternalIP", "address": address}],
            "bootstrapReady": True,
            "infrastructureReady": True,
            "nodeInfo": _node_info(),
            "conditions": [condition("Ready"), condition("NodeHealthy")],
        }
        await self._m.patch(k.MACHINES, name, hosted, {"status": status}, subresource="status")

    async def _launcher(self, instance: Object | None, hosted: str, name: str, infra_id: str, address: str) -> None:
        if instance is None:
            return
        kind = "VirtualMachineInstance"
        owner = {"apiVersion": "kubevirt.io/v1", "kind": kind, "name": name, "uid": instance["metadata"]["uid"]}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"virt-launcher-{name}",
                "namespace": hosted,
                "labels": {"kubevirt.io": "virt-launcher", LABEL_INFRA_ID: infra_id},
                "ownerReferences": [owner],
            },
            "spec": {"nodeName": "infra-0", "containers": [{"name": "compute", "image": "none"}]},
        }
        await self._create(self._m, pod)
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        where = (k.PODS, pod["metadata"]["name"], hosted)  # type: ignore[index]
        await self._m.patch(*where, {"status": status}, subresource="status")

    # guests

    async def _joins(self, number: int, name: str, address: str) -> None:
        """As a kubelet does it: a first certificate, then the node, then one to be asked under."""
        guest = prefix_of(number)[:-1]
        await self._ask(guest, name, BOOTSTRAP_TOKEN, CLIENT_SIGNER, "")
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", LABEL: guest}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        await self._create(self._g, {**node, "spec": {"providerID": provider_id(name)}})
        size = {"cpu": "2", "memory": "4Gi", "pods": "110"}
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "",
            "lastHeartbeatTime": _now(),
        }
        status = {
            "capacity": size,
            "allocatable": size,
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._kubelet_port}},
            "nodeInfo": _node_info(),
        }
        await self._g.patch(k.NODES, name, None, {"status": status}, subresource="status")
        await self._ask(guest, name, f"node-{name}", SERVING_SIGNER, address)
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"konnectivity-agent-{name}",
                "namespace": f"{guest}-kube-system",
                "labels": {"k8s-app": "konnectivity-agent"},
            },
            "spec": {"nodeName": name, "containers": [{"name": "konnectivity-agent", "image": "none"}]},
        }
        await self._create(self._g, pod)
        where = (k.PODS, pod["metadata"]["name"], f"{guest}-kube-system")  # type: ignore[index]
        await self._g.patch(*where, {"status": {"phase": "Running"}}, subresource="status")

    async def _ask(self, guest: str, name: str, token: str, signer: str, address: str) -> None:
        """A certificate; returns once the operator approved it."""
        use = "server auth" if address else "client auth"
        asked = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": f"{name}-{'serving' if address else 'client'}", "labels": {LABEL: guest}},
            "spec": {
                "request": request_for(name, *([address] if address else [])),
                "signerName": signer,
                "usages": ["digital signature", use],
            },
        }
        title = str(asked["metadata"]["name"])  # type: ignore[index]
        answered = self._approved.setdefault(title, asyncio.Event())
        path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
        with contextlib.suppress(AlreadyExists):
            await self._anyone.transport.send(
                Call("create", "certificatesigningrequests"),
                "POST",
                path,
                data=json.dumps(asked).encode(),
                headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            )
        await answered.wait()
        del self._approved[title]

    def _answered(self, _old: Object | None, new: Object | None) -> None:
        if new is not None and is_true(at(new, "status.conditions"), "Approved"):
            self._approved.setdefault(new["metadata"]["name"], asyncio.Event()).set()

    def _part(self, resource: k.Resource, informer: Informer) -> Any:
        async def reconcile(key: str) -> None:
            live = informer.get_key(key)
            if live is None:
                return
            meta = live["metadata"]
            nodes = len(self._nodes.by_index("guest", meta["namespace"][:5]))
            if resource is k.DAEMONSETS:
                wanted, said = nodes, at(live, "status.numberAvailable") or 0
                status: Object = {**dict.fromkeys(SCHEDULED, nodes), "numberMisscheduled": 0}
            else:
                wanted, said = int(live["spec"].get("replicas", 1)), at(live, "status.availableReplicas") or 0
                status = dict.fromkeys(COUNTS, wanted)
            if not nodes or (at(live, "status.observedGeneration"), said) == (meta["generation"], wanted):
                return
            body = {"status": {**status, "observedGeneration": meta["generation"]}}
            await self._g.patch(resource, meta["name"], meta["namespace"], body, subresource="status")

        return reconcile

    @staticmethod
    async def _create(client: Client, obj: Object) -> Object | None:
        try:
            return await client.create(obj)
        except AlreadyExists:
            return None


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _node_info() -> Object:
    words = "architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion machineID operatingSystem"
    return {**dict.fromkeys((*words.split(), "osImage", "systemUUID"), ""), "kubeletVersion": "v1.36.3"}


async def kubelet() -> int:
    """Answers every request for a log, for all nodes; the port."""
    ca = pki.new_ca("kubelet")
    leaf = pki.issue(ca, "kubelet", ips=("127.0.0.1",), usage="server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(leaf.cert_pem + b"\n" + leaf.key_pem)
        file.flush()
        context.load_cert_chain(file.name)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nready\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    return int(server.sockets[0].getsockname()[1])


async def namespaces(guests: Client, numbers: Iterable[int]) -> None:
    """What a new guest has before anybody does anything."""
    limit = asyncio.Semaphore(16)

    async def one(name: str) -> None:
        async with limit:
            await Player._create(guests, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    names = [f"{prefix_of(n)}{name}" for n in numbers for name in ("kube-system", "default")]
    await asyncio.gather(*(one(name) for name in names))


async def main(options: argparse.Namespace) -> None:
    setup_logging("info", form="text")
    config = load_config(options.guests)
    anyone = ClusterConfig(config.server, ca_pem=config.ca_pem)
    async with (
        Client(load_config(options.management)) as management,
        Client(config) as guests,
        Client(anyone) as nobody,
    ):
        port = await kubelet()
        await namespaces(guests, range(options.clusters))
        print("ready", flush=True)
        await Player(management, guests, nobody, port).run()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--management", required=True)
    parser.add_argument("--guests", required=True)
    parser.add_argument("--clusters", type=int, required=True)
    asyncio.run(main(parser.parse_args()))
