"""The KubeVirt cloud controllers on a real API server, which here plays guest and infra at once."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import ApiServer
from tests.support.certificates import ask_for_certificate
from tests.support.eventually import eventually
from tests.support.machines import instance, launcher, machine, run_launcher, virtual_machine
from tests.support.node_pools import Object, clean, hosted_cluster, node_pool, prepare, running_operator

from hcp.kube import Client
from hcp.kube import resources as r


@pytest.fixture
async def home(client: Client, namespace: str, api_server: Path) -> AsyncIterator[str]:
    """A hosted cluster with a pool, a machine `vm-…` and its running VM."""
    await prepare(client)
    await hosted_cluster(client, namespace, api_server)
    await client.create(node_pool(namespace, nodeLabels={"zone": "a"}))
    await client.create(machine(namespace))
    vm = instance(namespace, "10.9.0.5")
    made = await client.create(vm)
    await client.create(launcher(made))
    await run_launcher(client, made, "10.9.0.5")
    async with running_operator(api_server):
        yield namespace
    await clean(client, namespace)


async def test_only_machines_of_the_cluster_get_certificates(
    client: Client, home: str, shared_server: ApiServer
) -> None:
    assert await ask_for_certificate(shared_server, client, f"good-{home}", f"vm-{home}") == "Approved"
    assert await ask_for_certificate(shared_server, client, f"bad-{home}", "intruder") == "Denied"

    async def told() -> bool:
        events = await client.list(r.EVENTS, home)
        return any(event["reason"] == "NodeCertificateDenied" for event in events)

    assert await eventually(told)


async def test_a_machine_made_anew_may_join_again(client: Client, home: str, shared_server: ApiServer) -> None:
    name = f"vm-{home}"
    await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})

    async def known() -> bool:
        return "node-role.kubernetes.io/worker" in (await client.get(r.NODES, name))["metadata"].get("labels", {})

    assert await eventually(known)
    assert await ask_for_certificate(shared_server, client, f"copy-{home}", name) == "Denied"
    await asyncio.sleep(1.1)  # creation times have whole seconds
    await client.create(virtual_machine(name, f"{home}-demo"))
    assert await ask_for_certificate(shared_server, client, f"anew-{home}", name) == "Approved"


async def test_a_node_follows_its_pool(client: Client, home: str) -> None:
    name = f"vm-{home}"
    await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})

    async def labelled(value: str | None) -> bool:
        node = await client.get(r.NODES, name)
        labels = node["metadata"].get("labels") or {}
        assert "node-role.kubernetes.io/worker" in labels and labels.get("zone") == value, labels
        return bool(node["spec"]["providerID"] == f"kubevirt://{name}")

    assert await eventually(lambda: labelled("a"))
    await client.patch(r.NODEPOOLS, "demo", home, {"spec": {"nodeLabels": {"zone": "b"}}})
    assert await eventually(lambda: labelled("b"))
    await client.patch(r.NODEPOOLS, "demo", home, {"spec": {"nodeLabels": None}})
    assert await eventually(lambda: labelled(None))


async def test_load_balancers_follow_services_and_machines(client: Client, home: str) -> None:
    hosted = f"{home}-demo"
    spec: dict[str, Any] = {
        "type": "LoadBalancer",
        "selector": {"app": "web"},
        "sessionAffinity": "ClientIP",
        "loadBalancerClass": "example.com/none",
        "ports": [{"port": 80, "targetPort": 8080}],
    }
    metadata = {"name": "web", "namespace": home}
    service = await client.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    port = service["spec"]["ports"][0]["nodePort"]

    async def mirrored() -> Object | None:
        label = "cluster.x-k8s.io/tenant-service-name"
        found = [item for item in await client.list(r.SERVICES, hosted) if item["metadata"]["labels"][label] == "web"]
        return found[0] if found else None

    infra = await eventually(mirrored)
    assert infra["spec"]["ports"][0]["targetPort"] == port
    assert infra["spec"]["sessionAffinity"] == "ClientIP"
    assert infra["spec"]["loadBalancerClass"] == "example.com/none"

    async def addresses(wanted: list[str]) -> bool:
        slices = await client.list(r.ENDPOINTSLICES, hosted)
        found = sorted(address for item in slices for end in item["endpoints"] for address in end["addresses"])
        assert found == wanted, found
        return True

    assert await eventually(lambda: addresses(["10.9.0.5"]))
    # Machines are made anew under the same name, in another pod.
    await client.delete(r.PODS, f"virt-launcher-vm-{home}", hosted, grace=0)
    vm = await client.get(r.VMIS, f"vm-{home}", hosted)
    await client.create(launcher(vm))
    await run_launcher(client, vm, "10.9.0.6")
    assert await eventually(lambda: addresses(["10.9.0.6"]))
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}}}
    await client.patch(r.SERVICES, infra["metadata"]["name"], hosted, status, subresource="status")

    async def told() -> bool:
        found = await client.get(r.SERVICES, "web", home)
        return bool(found["status"]["loadBalancer"]["ingress"][0]["ip"] == "192.0.2.9")

    assert await eventually(told)
    await client.delete(r.SERVICES, "web", home)

    async def gone() -> bool:
        guest = await client.get_or_none(r.SERVICES, "web", home)
        return guest is None and not await client.list(r.SERVICES, hosted)

    assert await eventually(gone)


async def test_a_node_whose_machine_has_ended_is_out_of_service_until_it_is_back(client: Client, home: str) -> None:
    name, hosted = f"vm-{home}", f"{home}-demo"
    conditions = (await client.get(r.HOSTEDCLUSTERS, "demo", home))["status"]["conditions"]
    storage = {**conditions[0], "type": "StorageAvailable"}
    body: Object = {"status": {"conditions": [*conditions, storage]}}
    await client.patch(r.HOSTEDCLUSTERS, "demo", home, body, subresource="status")
    await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})

    async def report() -> None:
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
        body = {"status": {"conditions": [ready]}}
        await client.patch(r.NODES, name, None, body, subresource="status", manager="kubelet")

    async def seen() -> tuple[bool, str]:
        node = await client.get(r.NODES, name)
        taints = [taint["key"] for taint in node["spec"].get("taints") or ()]
        return "node.kubernetes.io/out-of-service" in taints, node["status"]["conditions"][0]["status"]

    async def is_now(*wanted: object) -> bool:
        return await seen() == wanted

    await report()
    vm = await client.get(r.VMIS, name, hosted)
    await client.delete(r.VMIS, name, hosted)
    await eventually(lambda: _known(client, name), "the node is followed")
    assert await seen() == (False, "True"), "its pod still runs"
    await client.delete(r.PODS, f"virt-launcher-{name}", hosted, grace=0)
    assert await eventually(lambda: is_now(True, "Unknown"), "nothing of it runs any more")
    await asyncio.sleep(1.1)  # times have whole seconds
    again = instance(home, "10.9.0.5")
    assert again["metadata"]["name"] == vm["metadata"]["name"]
    await client.create(again)
    await asyncio.sleep(1.1)
    assert await seen() == (True, "Unknown"), "it has not reported yet"
    await report()
    await asyncio.sleep(1.1)
    assert await seen() == (True, "True"), "nothing there mounts volumes yet"
    await _driver_runs(client, name)
    assert await eventually(lambda: is_now(False, "True"), "it is back")


async def _driver_runs(client: Client, node: str) -> None:
    name, labels = f"driver-{node}", {"k8s-app": "kubevirt-csi-node"}
    metadata = {"name": name, "namespace": "kube-system", "labels": labels}
    spec = {"nodeName": node, "containers": [{"name": "csi-driver", "image": "r.test/driver"}]}
    await client.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await client.patch(r.PODS, name, "kube-system", status, subresource="status", manager="kubelet")


async def _known(client: Client, name: str) -> bool:
    return "node-role.kubernetes.io/worker" in (await client.get(r.NODES, name))["metadata"].get("labels", {})
