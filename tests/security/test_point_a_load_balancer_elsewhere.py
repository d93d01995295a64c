"""A machine reports the address of somebody else's pod as its own, so that its load balancer leads there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support import node_pools as support
from tests.support.eventually import eventually
from tests.support.machines import instance, launcher, machine, run_launcher
from tests.support.node_pools import Object, running_operator

from hcp.kube import Client
from hcp.kube import resources as r

OWN, STOLEN = "10.9.0.5", "10.9.0.66"


@pytest.fixture
async def home(client: Client, namespace: str, api_server: Path) -> AsyncIterator[str]:
    """A hosted cluster with one machine whose guest agent lies."""
    await support.prepare(client)
    await support.hosted_cluster(client, namespace, api_server)
    await client.create(support.node_pool(namespace))
    await client.create(machine(namespace))
    vm = await client.create(instance(namespace, STOLEN))
    await report(client, namespace, STOLEN)
    await client.create(launcher(vm))
    async with running_operator(api_server):
        yield namespace
    await support.clean(client, namespace)


async def report(client: Client, home: str, address: str) -> None:
    status = instance(home, address)["status"]
    await client.patch(r.VMIS, f"vm-{home}", f"{home}-demo", {"status": status})


async def service(client: Client, home: str, name: str) -> None:
    metadata = {"name": name, "namespace": home}
    spec = {"type": "LoadBalancer", "loadBalancerClass": "example.com/none", "ports": [{"port": 80}]}
    await client.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})


async def mirrored(client: Client, home: str, name: str) -> Object | None:
    found = await client.list(r.SERVICES, f"{home}-demo", f"cluster.x-k8s.io/tenant-service-name={name}")
    return found[0] if found else None


async def led_to(client: Client, home: str) -> set[str]:
    slices = await client.list(r.ENDPOINTSLICES, f"{home}-demo")
    return {address for item in slices for end in item["endpoints"] for address in end["addresses"]}


async def test_only_the_address_of_the_machines_own_pod_is_led_to(client: Client, home: str) -> None:
    hosted = f"{home}-demo"
    await service(client, home, "web")
    assert await eventually(lambda: mirrored(client, home, "web"))
    vm = await client.get(r.VMIS, f"vm-{home}", hosted)
    await run_launcher(client, vm, OWN)

    async def own() -> bool:
        return await led_to(client, home) == {OWN}

    assert await eventually(own)
    # Again while the load balancer is in use, and with a pod of the attacker's that claims to be the machine's.
    await report(client, home, "10.9.0.67")
    false = launcher({**vm, "metadata": {**vm["metadata"], "uid": "00000000-0000-0000-0000-000000000000"}})
    false["metadata"]["name"] += "-false"
    await client.create(false)
    status = {"phase": "Running", "podIP": STOLEN, "podIPs": [{"ip": STOLEN}]}
    await client.patch(r.PODS, false["metadata"]["name"], hosted, {"status": status}, subresource="status")
    # A Service made after that has been seen to be handled shows that the lie was handled before it.
    await service(client, home, "later")
    later = await eventually(lambda: mirrored(client, home, "later"))

    async def handled() -> bool:
        slices = await client.list(r.ENDPOINTSLICES, hosted)
        return any(item["metadata"]["name"].startswith(later["metadata"]["name"]) for item in slices)

    assert await eventually(handled)
    assert await led_to(client, home) == {OWN}
