"""A hosted cluster falls asleep and wakes: its control plane is real, its machines are what the test says of them."""

from __future__ import annotations

import asyncio
import datetime as dt
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import crds as crds_support
from tests.support import guest_nodes
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.definitions import VIRTUALIZATION, real
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, hands, says
from tests.support.hosted_pods import HostedPods
from tests.support.machines import virtual_machine
from tests.support.passes import a_pass
from tests.support.running_cluster import NAME, NS, kubeconfig

from hcp.api import names
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube import resources as k
from hcp.kubevirt import lost

Object = dict[str, Any]
HCP = Path(sys.executable).parent / "hcp"
VM = "machine-1"
HOLD = "example.com/still-shutting-down"


@pytest.fixture
async def admin(admin: Client) -> Client:
    await crds_support.install(admin, real(*VIRTUALIZATION))
    return admin


def hcp(server: ApiServer, *words: str) -> str:
    command = [str(HCP), *words, f"--kubeconfig={server.kubeconfig}"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


async def stage(client: Client) -> tuple[Any, Any]:
    found = await s.condition(client, NAME, "Hibernating")
    return found.get("reason"), found.get("status")


async def reached(client: Client, wanted: str) -> None:
    async def there() -> bool:
        return bool((await stage(client))[0] == wanted)

    await eventually(there, wanted, hands(client, NS))


async def replicas(client: Client) -> dict[str, int]:
    live = [*await client.list(k.DEPLOYMENTS, NS), *await client.list(k.STATEFULSETS, NS)]
    return {one["metadata"]["name"]: one["spec"]["replicas"] for one in live}


async def labels(client: Client) -> dict[str, str]:
    cluster = await client.get(k.HOSTEDCLUSTERS, NAME, "clusters")
    return {names.LABEL_INFRA_ID: cluster["spec"]["infraID"]}


async def start_instance(client: Client) -> Object:
    """What KubeVirt does for a machine that shall run. It does not end at once."""
    metadata = {"name": VM, "namespace": NS, "labels": await labels(client), "finalizers": [HOLD]}
    body = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": metadata}
    spec: Object = {"domain": {"devices": {}}}
    return await client.create({**body, "spec": spec, "status": {"phase": "Running"}})


async def end_instance(client: Client) -> None:
    await client.patch(k.VMIS, VM, NS, {"metadata": {"finalizers": None}})


async def a_machine(client: Client) -> None:
    await client.create(virtual_machine(VM, NS, labels=await labels(client)))
    await start_instance(client)
    pool = crds_support.rendered_pool("clusters", "workers")
    pool["spec"] |= {"clusterName": NAME, "replicas": 0}
    await client.create(pool)


async def strategy(client: Client) -> str:
    return str((await client.get(k.VIRTUALMACHINES, VM, NS))["spec"]["runStrategy"])


async def quiet(running: Running) -> None:
    """Until nothing was written between two passes over every cluster."""
    before = -1
    while before != len(running.writes):
        before = len(running.writes)
        await asyncio.sleep(1)


async def inside(client: Client) -> Client:
    return Client(untrusted_kubeconfig.load(await kubeconfig(client)))


async def test_machines_end_before_the_control_plane_and_start_after_it(
    admin: Client, server: ApiServer, pods: HostedPods, operator: Callable[[], Running]
) -> None:
    async with await inside(admin) as tenant:
        await guest_nodes.join(tenant, VM)
        await tenant.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}}
        )
    assert await stage(admin) == (None, None), "a cluster that never slept says nothing about it"
    await a_machine(admin)
    cluster = await admin.get(k.HOSTEDCLUSTERS, NAME, "clusters")
    infra = cluster["spec"]["infraID"]

    # Down: the machine is asked to end, and the control plane is there as long as it takes.
    assert "falls asleep" in hcp(server, "hibernate", NAME)

    async def ending() -> bool:
        return bool((await admin.get(k.VMIS, VM, NS))["metadata"].get("deletionTimestamp"))

    await eventually(ending, "the machine is shut down")
    assert await strategy(admin) == "Manual"
    assert (await admin.get(k.CAPI_CLUSTERS, infra, NS))["spec"]["paused"] is True
    async with a_pass("hostedcluster"):
        await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"metadata": {"annotations": {"nudge": "1"}}})
    assert all((await replicas(admin)).values()), "the control plane is needed by machines that shut down"
    assert (await stage(admin))[0] == "FallingAsleep"
    await end_instance(admin)
    await reached(admin, "Asleep")
    assert set((await replicas(admin)).values()) == {0}
    assert not pods.running
    assert await stage(admin) == ("Asleep", "True")
    available = await s.condition(admin, NAME, "Available")
    assert (available["status"], available["reason"]) == ("False", "Hibernating")
    assert f"hcp wake {NAME} -n clusters" in available["message"]
    assert (await s.condition(admin, NAME, "ReconciliationSucceeded"))["status"] == "True"
    assert (await s.condition(admin, NAME, "Degraded"))["status"] == "False"
    assert "The cluster sleeps" in hcp(server, "get", "clusters")
    assert f"hosted cluster clusters/{NAME}: asleep" in hcp(server, "status", NAME)

    # Asleep: passes write nothing, of this process or the next.
    running = Running.latest
    await quiet(running)
    running.writes.clear()
    async with a_pass("hostedcluster", "machine-sleep", "guest-sessions"):
        await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"metadata": {"annotations": {"nudge": "2"}}})
    assert running.writes == []
    await running.stop()
    async with a_pass("hostedcluster", "machine-sleep", "vm-isolation"):
        again = operator()
    await quiet(again)
    assert again.writes == []
    assert set((await replicas(admin)).values()) == {0}
    # A machine that somebody starts is stopped again.
    await start_instance(admin)
    await eventually(ending, "it ends")
    await end_instance(admin)

    # Up: the machine starts when the API server is there, and Cluster API goes on when its node has reported.
    assert await strategy(admin) == "Manual"
    hcp(server, "wake", NAME)
    await eventually(lambda: says(admin, NAME, "Available", "True"), "Available", hands(admin, NS))

    async def started() -> bool:
        return await strategy(admin) == "Always"

    await eventually(started, "the machine may start")
    vm = await admin.get(k.VIRTUALMACHINES, VM, NS)
    assert names.MARK_ASLEEP not in (vm["metadata"].get("annotations") or {})
    await start_instance(admin)
    async with a_pass("machine-sleep"):
        await admin.patch(k.VMIS, VM, NS, {"metadata": {"labels": {"nudge": "1"}}})
    assert await stage(admin) == ("WakingUp", "False")
    assert (await admin.get(k.CAPI_CLUSTERS, infra, NS))["spec"]["paused"] is True, "nobody repairs what comes back"
    async with await inside(admin) as tenant:
        assert await tenant.get(k.CONFIGMAPS, "kept", "default"), "what it stored is there"
        taints = (await tenant.get(k.NODES, VM))["spec"].get("taints") or []
        assert lost.TAINT["key"] not in {one["key"] for one in taints}, "its machine was not taken for lost"
        await report(tenant)
    await reached(admin, "Awake")

    async def goes_on() -> bool:
        return (await admin.get(k.CAPI_CLUSTERS, infra, NS))["spec"]["paused"] is False

    await eventually(goes_on, "Cluster API goes on")
    assert await strategy(admin) == "Always"
    await end_instance(admin)


async def report(tenant: Client) -> None:
    """As the kubelet of the machine that runs now does it."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now, "reason": "x"}
    await tenant.patch(k.NODES, VM, None, {"status": {"conditions": [ready]}}, subresource="status", manager="kubelet")


async def test_a_sleeping_cluster_can_be_edited_and_deleted(admin: Client, server: ApiServer, pods: HostedPods) -> None:
    hcp(server, "hibernate", "--name", NAME)
    await reached(admin, "Asleep")
    verbose = {"metadata": {"annotations": {names.ANNOTATION_SCHEDULER_VERBOSITY: "3"}}}
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", verbose)

    async def changed() -> bool:
        live = await admin.get(k.DEPLOYMENTS, "kube-scheduler", NS)
        return "--v=3" in live["spec"]["template"]["spec"]["containers"][0]["command"]

    await eventually(changed, "it is as it shall be when it wakes")
    assert set((await replicas(admin)).values()) == {0}
    await admin.delete(k.HOSTEDCLUSTERS, NAME, "clusters")
    await eventually(lambda: gone(admin, NAME), "all is gone")


async def test_a_schedule_puts_it_to_sleep_and_a_person_wakes_it(
    admin: Client, server: ApiServer, pods: HostedPods
) -> None:
    # Asleep since the last hour and until the next one.
    now = dt.datetime.now(dt.UTC)
    slept, wakes = now - dt.timedelta(hours=2), now + dt.timedelta(hours=2)
    plan = (f"--schedule=0 {slept.hour} * * *", f"--wake-schedule=0 {wakes.hour} * * *")
    assert "falls asleep now" in hcp(server, "hibernate", NAME, *plan)
    await reached(admin, "Asleep")
    assert "It wakes by itself at" in (await s.condition(admin, NAME, "Hibernating"))["message"]
    hcp(server, "wake", NAME)
    await reached(admin, "Awake")
    assert await says(admin, NAME, "Available", "True")
    # What cannot be read is told, and changes nothing.
    bad = {"metadata": {"annotations": {names.ANNOTATION_WAKE_SCHEDULE: "at noon"}}}
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", bad)

    async def told() -> bool:
        return "is not a schedule" in (await s.condition(admin, NAME, "AllFieldsHonoured"))["message"]

    await eventually(told, "it is told")
    assert (await stage(admin))[0] == "Awake"
