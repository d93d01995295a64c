"""A sick node's VM is restarted, and only then its machine replaced: with Cluster API's real managers.

What KubeVirt and a kubelet would do is done by hand; the guest's API is the test's own server.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml
from tests.support import management as s
from tests.support import node_pools as pools
from tests.support.api_server import ApiServer
from tests.support.cluster_api_place import boot, install, known_to_cluster_api, report
from tests.support.eventually import eventually
from tests.support.node_pools import Object, data
from tests.support.security.managers import Managers

from hcp.api import names
from hcp.api.names import LABEL_IGNITION_SERVER, MARK_IGNITION_REACHED
from hcp.kube import Client, load_config
from hcp.kube import resources as k

HOME, HOSTED, ID = "teams", "teams-demo", "demo-abcde"


@pytest.fixture
def management(tmp_path: Path, bin_dir: Path) -> Iterator[ApiServer]:
    directory = tmp_path / "management"
    directory.mkdir()
    with s.management_server(directory, bin_dir) as made:
        yield made


@pytest.fixture
async def admin(management: ApiServer, tmp_path: Path) -> AsyncIterator[Client]:
    """A hosted cluster as Cluster API knows it, its managers and the operator at work."""
    async with Client(load_config(management.kubeconfig)) as client:
        await install(client, management, HOME)
        cluster = await pools.hosted_cluster(client, HOME, management.kubeconfig)
        await known_to_cluster_api(client, cluster, management.kubeconfig)
        managers = Managers(management, tmp_path)
        await managers.start(client)
        try:
            async with pools.running_operator(management.kubeconfig):
                yield client
        finally:
            managers.stop()


async def under_repair(client: Client) -> Object | None:
    pool = await client.get(k.NODEPOOLS, "demo", HOME)
    found = [one for one in pool["status"]["conditions"] if one["type"] == "NodesUnderRepair"]
    return found[0] if found else None


async def reasons(client: Client) -> set[str]:
    return {event["reason"] for event in await client.list(k.EVENTS, HOME)}


async def healthy(client: Client) -> bool:
    check = await client.get(k.MACHINEHEALTHCHECKS, "demo", HOSTED)
    return bool(check["status"].get("currentHealthy") == 1)


async def watched_machine(client: Client) -> tuple[str, str]:
    """A pool of one machine that is repaired at once; its name and its first instance."""
    pool = pools.node_pool(HOME, replicas=1, management={"autoRepair": True, "upgradeType": "Replace"})
    pool["metadata"]["annotations"] = {names.ANNOTATION_MHC_TIMEOUT: "1s"}
    await client.create(pool)

    async def machine_made() -> str | None:
        found = await client.list(k.VIRTUALMACHINES, HOSTED)
        return str(found[0]["metadata"]["name"]) if found else None

    name = await eventually(machine_made)
    first = await boot(client, HOSTED, name)
    for document in await client.list(k.SECRETS, names.OPERATOR_NAMESPACE, labels=LABEL_IGNITION_SERVER):
        body = {"metadata": {"annotations": {MARK_IGNITION_REACHED: "True"}}}
        await client.patch(k.SECRETS, document["metadata"]["name"], names.OPERATOR_NAMESPACE, body)
    await eventually(lambda: healthy(client))
    return name, first


async def test_a_sick_node_is_restarted_then_replaced(admin: Client) -> None:
    name, first = await watched_machine(admin)
    machine = await admin.get(k.MACHINES, name, HOSTED)

    # Somebody works on the node: it is left alone, and that is said.
    await admin.patch(k.NODES, name, None, {"spec": {"unschedulable": True}})
    await report(admin, name, ready=False)

    async def spared() -> bool:
        told = await under_repair(admin)
        return told is not None and told["reason"] == "Held" and "cordoned" in told["message"]

    await eventually(spared)
    assert (await admin.get(k.VMIS, name, HOSTED))["metadata"]["uid"] == first

    # They are done, and it is still sick: restarted, once.
    await admin.patch(k.NODES, name, None, {"spec": {"unschedulable": None}})

    async def ended() -> bool:
        return await admin.get_or_none(k.VMIS, name, HOSTED) is None

    await eventually(ended)

    async def restarting() -> bool:
        told = await under_repair(admin)
        return told is not None and told["reason"] == "Restarting" and f"Node {name}" in told["message"]

    await eventually(restarting)
    second = await boot(admin, HOSTED, name)
    assert second != first

    async def healed() -> bool:
        nothing = not await admin.list(k.NODEREPAIRS, HOSTED) and await under_repair(admin) is None
        return nothing and {"RestartingNode", "NodeRecovered"} <= await reasons(admin)

    await eventually(healed)
    [same] = await admin.list(k.MACHINES, HOSTED)
    assert same["metadata"]["uid"] == machine["metadata"]["uid"]
    assert (await admin.get(k.VMIS, name, HOSTED))["metadata"]["uid"] == second

    # Sick again soon after: another machine.
    await report(admin, name, ready=False)

    async def replaced() -> bool:
        left = {one["metadata"]["name"] for one in await admin.list(k.MACHINES, HOSTED)}
        return bool(left) and name not in left and "ReplacingNode" in await reasons(admin)

    await eventually(replaced)
    assert not [one for one in await admin.list(k.NODEREPAIRS, HOSTED) if one["metadata"]["name"] != name]


async def enter(client: Client, stage: str) -> None:
    """What a pass over the HostedCluster does when it enters a stage: it says so, and Cluster API rests or goes on."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    cluster = await client.get(k.HOSTEDCLUSTERS, "demo", HOME)
    status = "True" if stage == "Asleep" else "False"
    told = {"type": "Hibernating", "status": status, "reason": stage, "message": "", "lastTransitionTime": now}
    conditions = [one for one in cluster["status"]["conditions"] if one["type"] != "Hibernating"]
    body = {"status": {"conditions": [*conditions, told]}}
    await client.patch(k.HOSTEDCLUSTERS, "demo", HOME, body, subresource="status")
    await client.patch(k.CAPI_CLUSTERS, ID, HOSTED, {"spec": {"paused": stage != "Awake"}})


async def strategy(client: Client, name: str) -> str:
    return str((await client.get(k.VIRTUALMACHINES, name, HOSTED))["spec"]["runStrategy"])


async def finish(client: Client, name: str) -> None:
    """A machine that shut down: KubeVirt shows it as ended before the instance goes."""
    await client.patch(k.VMIS, name, HOSTED, {"status": {"phase": "Succeeded"}})


async def test_a_machine_that_slept_is_woken_and_not_repaired(admin: Client) -> None:
    name, first = await watched_machine(admin)
    machine = await admin.get(k.MACHINES, name, HOSTED)
    # It takes its time to shut down; its node is sick since long when it is gone.
    await admin.patch(k.VMIS, name, HOSTED, {"metadata": {"finalizers": ["example.com/shutting-down"]}})
    await enter(admin, "FallingAsleep")

    async def ending() -> bool:
        return bool((await admin.get(k.VMIS, name, HOSTED))["metadata"].get("deletionTimestamp"))

    await eventually(ending)
    assert await strategy(admin, name) == "Manual"
    await report(admin, name, ready=False)
    await finish(admin, name)

    async def noticed() -> bool:
        return (await admin.get(k.KUBEVIRTMACHINES, name, HOSTED))["status"].get("ready") is False

    # Cluster API's provider looks at it while it ends.
    running = [{"type": "Ready", "status": "False"}]
    await admin.patch(k.VMIS, name, HOSTED, {"status": {"conditions": running}})
    await eventually(noticed)
    await admin.patch(k.VMIS, name, HOSTED, {"metadata": {"finalizers": None}})
    await enter(admin, "Asleep")

    async def slept() -> bool:
        pool = await admin.get(k.NODEPOOLS, "demo", HOME)
        ready = next(one for one in pool["status"]["conditions"] if one["type"] == "Ready")
        return bool(ready["reason"] == "Hibernating" and pool["status"]["replicas"] == 0)

    await eventually(slept)
    assert await admin.get_or_none(k.VMIS, name, HOSTED) is None

    await enter(admin, "WakingUp")

    async def started() -> bool:
        return await strategy(admin, name) == "Always"

    await eventually(started)
    second = await boot(admin, HOSTED, name)
    assert second != first
    await enter(admin, "Awake")
    # Another timeout is another health check: what it says of it, it says after it went on.
    later = {"metadata": {"annotations": {names.ANNOTATION_MHC_TIMEOUT: "2s"}}}
    await admin.patch(k.NODEPOOLS, "demo", HOME, later)

    async def judged_anew() -> bool:
        check = await admin.get(k.MACHINEHEALTHCHECKS, "demo", HOSTED)
        new = check["spec"]["unhealthyConditions"][0]["timeout"] == "2s"
        return bool(new and check["status"].get("observedGeneration") == check["metadata"]["generation"])

    await eventually(judged_anew)

    async def goes_on() -> bool:
        same = await admin.get(k.MACHINES, name, HOSTED)
        paused = next(one for one in same["status"]["v1beta2"]["conditions"] if one["type"] == "Paused")
        ready = next(one for one in same["status"]["conditions"] if one["type"] == "InfrastructureReady")
        return bool(paused["status"] == "False" and ready["status"] == "True")

    await eventually(goes_on)
    await eventually(lambda: healthy(admin))

    async def pool_is_back() -> bool:
        return bool((await admin.get(k.NODEPOOLS, "demo", HOME))["status"]["replicas"] == 1)

    await eventually(pool_is_back)
    [same] = await admin.list(k.MACHINES, HOSTED)
    assert same["metadata"]["uid"] == machine["metadata"]["uid"]
    assert not same["status"].get("failureReason"), "a machine that is halted is taken for failed"
    assert (await admin.get(k.VMIS, name, HOSTED))["metadata"]["uid"] == second
    assert not await admin.list(k.NODEREPAIRS, HOSTED)
    assert not {"RestartingNode", "ReplacingNode", "NodeOutOfService"} & await reasons(admin)


async def test_the_machines_of_a_sleeping_cluster_can_be_deleted(admin: Client) -> None:
    """No guest answers: neither draining nor the deletion of its Node may hold a machine up."""
    name, _ = await watched_machine(admin)
    await enter(admin, "FallingAsleep")

    async def asleep() -> bool:
        return await admin.get_or_none(k.VMIS, name, HOSTED) is None

    await eventually(asleep)
    await enter(admin, "Asleep")
    secret = await admin.get(k.SECRETS, f"{ID}-kubeconfig", HOSTED)
    nowhere = yaml.safe_load(base64.b64decode(secret["data"]["value"]))
    nowhere["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    content = {"data": data(value=yaml.safe_dump(nowhere))}
    await admin.patch(k.SECRETS, f"{ID}-kubeconfig", HOSTED, content)
    # Somebody holds the cluster, so that it stays while its pools go, as the operator deletes them.
    await admin.patch(k.HOSTEDCLUSTERS, "demo", HOME, {"metadata": {"finalizers": ["example.com/held"]}})
    await admin.delete(k.HOSTEDCLUSTERS, "demo", HOME)
    await admin.patch(k.CAPI_CLUSTERS, ID, HOSTED, {"spec": {"paused": False}})
    await admin.delete(k.NODEPOOLS, "demo", HOME)

    async def gone() -> bool:
        pool = await admin.get_or_none(k.NODEPOOLS, "demo", HOME)
        return pool is None and not await admin.list(k.VIRTUALMACHINES, HOSTED)

    await eventually(gone)
    await admin.patch(k.HOSTEDCLUSTERS, "demo", HOME, {"metadata": {"finalizers": None}})
