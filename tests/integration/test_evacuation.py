"""Infra nodes that are drained: machines are moved, or drained and replaced, with Cluster API's real managers.

What KubeVirt and a kubelet would do is done by hand; the guest's API is the test's own server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support import management as s
from tests.support import node_pools as pools
from tests.support.api_server import ApiServer
from tests.support.cluster_api_place import boot, install, known_to_cluster_api
from tests.support.eventually import eventually
from tests.support.node_pools import Object
from tests.support.security.managers import Managers

from hcp.api.names import ANNOTATION_EVACUATION, MARK_LEAVES
from hcp.kube import Client, load_config
from hcp.kube import resources as k
from hcp.preflight import evacuation

HOME, HOSTED = "teams", "teams-demo"
LONG_AGO = "2026-01-01T00:00:00Z"


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


async def told(client: Client) -> tuple[str, str]:
    """Reason and message of the condition; empty without it."""
    pool = await client.get(k.NODEPOOLS, "demo", HOME)
    found = [one for one in pool["status"]["conditions"] if one["type"] == "NodesUnderEvacuation"]
    return (found[0]["reason"], found[0]["message"]) if found else ("", "")


async def tells(client: Client, reason: str, words: str = "") -> None:
    async def said() -> bool:
        found = await told(client)
        assert found[0] == reason and words in found[1], found
        return True

    await eventually(said)


async def reasons(client: Client) -> set[str]:
    return {event["reason"] for event in await client.list(k.EVENTS, HOME)}


async def machine_beside(client: Client, *known: str) -> str:
    """The virtual machine that is there beside the known ones, running, its node Ready and known to Cluster API."""

    async def made() -> str | None:
        found = {one["metadata"]["name"] for one in await client.list(k.VIRTUALMACHINES, HOSTED)}
        return next(iter(found - set(known)), None)

    name = await eventually(made)
    await boot(client, HOSTED, name)
    await client.patch(k.VMIS, name, HOSTED, {"status": {"nodeName": "infra-1"}})
    await eventually(lambda: healthy(client, name))
    return name


async def healthy(client: Client, name: str) -> bool:
    machine = await client.get(k.MACHINES, name, HOSTED)
    found = [one for one in machine["status"].get("conditions") or [] if one["type"] == "NodeHealthy"]
    return bool(found and found[0]["status"] == "True")


async def evict(client: Client, name: str, *, migratable: bool) -> None:
    """What KubeVirt does when somebody evicts the pod of a machine with our strategy: it refuses and notes it."""
    told: list[Object] = [{"type": "Ready", "status": "True"}]
    able = {"type": "LiveMigratable", "status": str(migratable), "reason": "DisksNotLiveMigratable"}
    told.append({**able, "message": "" if migratable else "PVC is not shared"})
    await client.patch(k.VMIS, name, HOSTED, {"status": {"evacuationNodeName": "infra-1", "conditions": told}})


async def provider_looks(client: Client, name: str, address: str) -> None:
    """A pass of Cluster API's provider over a machine, which shows the address that it found."""
    await client.patch(k.VMIS, name, HOSTED, {"status": {"interfaces": [{"ipAddress": address}]}})

    async def shown() -> bool:
        found = await client.get(k.KUBEVIRTMACHINES, name, HOSTED)
        await client.patch(k.KUBEVIRTMACHINES, name, HOSTED, {"metadata": {"annotations": {"nudge": address}}})
        return any(one["address"] == address for one in found["status"].get("addresses") or [])

    await eventually(shown)


async def migration_beside(client: Client, *known: str) -> str:
    async def asked() -> str | None:
        found = {one["metadata"]["name"] for one in await client.list(k.VMI_MIGRATIONS, HOSTED)}
        return next(iter(found - set(known)), None)

    return await eventually(asked)


async def progress(client: Client, name: str, phase: str, at: str = LONG_AGO) -> str:
    times = [{"phase": phase, "phaseTransitionTimestamp": at}]
    body = {"status": {"phase": phase, "phaseTransitionTimestamps": times}}
    made = await client.patch(k.VMI_MIGRATIONS, name, HOSTED, body, subresource="status")
    return str(made["metadata"]["uid"])


async def test_a_machine_that_can_move_is_moved_and_stays_the_same(admin: Client) -> None:
    pool = pools.node_pool(HOME, replicas=1)
    pool["metadata"]["annotations"] = {ANNOTATION_EVACUATION: "Move"}
    await admin.create(pool)
    name = await machine_beside(admin)
    machine, instance = await admin.get(k.MACHINES, name, HOSTED), await admin.get(k.VMIS, name, HOSTED)
    assert await told(admin) == ("", "")
    await evict(admin, name, migratable=True)
    first = await migration_beside(admin)
    assert (await admin.get(k.VMI_MIGRATIONS, first, HOSTED))["spec"]["vmiName"] == name
    await tells(admin, "Migrating", f"Node {name} has to leave infra node infra-1")
    await provider_looks(admin, name, "10.9.9.1")

    # It fails: told with the reason, and tried again when it is time.
    uid = await progress(admin, first, "Failed", "2999-01-01T00:00:00Z")
    state = {"migrationUid": uid, "failureReason": "no route to it"}
    await admin.patch(k.VMIS, name, HOSTED, {"status": {"migrationState": state}})
    await tells(admin, "MigrationFailed", "no route to it; the next try is at 2999-01-01T00:00:30Z")
    assert (await evacuation.check(admin)).state == "warning"
    assert [one["metadata"]["name"] for one in await admin.list(k.VMI_MIGRATIONS, HOSTED)] == [first]
    await progress(admin, first, "Failed")
    second = await migration_beside(admin, first)

    uid = await progress(admin, second, "Running")
    state = {"migrationUid": uid, "targetNode": "infra-2"}
    await admin.patch(k.VMIS, name, HOSTED, {"status": {"migrationState": state}})
    await tells(admin, "Migrating", "Running to infra node infra-2")
    assert (await evacuation.check(admin)).state == "ok"
    await admin.patch(k.VMIS, name, HOSTED, {"status": {"nodeName": "infra-2", "evacuationNodeName": ""}})
    await progress(admin, second, "Succeeded")
    await tells(admin, "")

    async def said() -> bool:
        return {"MigratingNode", "NodeMigrationFailed", "NodeMigrated"} <= await reasons(admin)

    await eventually(said)
    [same] = await admin.list(k.MACHINES, HOSTED)
    assert same["metadata"]["uid"] == machine["metadata"]["uid"]
    assert MARK_LEAVES not in (same["metadata"].get("annotations") or {})
    assert (await admin.get(k.VMIS, name, HOSTED))["metadata"]["uid"] == instance["metadata"]["uid"]
    assert not (await admin.get(k.NODES, name))["spec"].get("unschedulable")
    assert len(await admin.list(k.VMI_MIGRATIONS, HOSTED)) == 2


async def test_a_machine_that_cannot_move_is_drained_and_goes_after_a_new_one_came(admin: Client) -> None:
    await admin.create(pools.node_pool(HOME, replicas=1))
    name = await machine_beside(admin)
    guarded = {"metadata": {"name": "web", "namespace": "default"}, "apiVersion": "v1", "kind": "Pod"}
    guarded["metadata"] |= {"labels": {"app": "web"}}  # type: ignore[operator]
    container = {"name": "web", "image": "x.example.com/web:1"}
    await admin.create({**guarded, "spec": {"nodeName": name, "containers": [container]}})
    # Of one that does not run no budget is asked.
    works = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await admin.patch(k.PODS, "web", "default", {"status": works}, subresource="status")
    budget: Object = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    budget |= {"metadata": {"name": "web", "namespace": "default"}}
    await admin.create({**budget, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}})
    instance = (await admin.get(k.VMIS, name, HOSTED))["metadata"]["uid"]

    async def runs_on() -> bool:
        found = await admin.get_or_none(k.VMIS, name, HOSTED)
        return found is not None and found["metadata"]["uid"] == instance and not _going(found)

    # Called off before anything else came of it: the pool has its size again.
    await evict(admin, name, migratable=False)
    await tells(admin, "Replacing", "PVC is not shared")
    await eventually(lambda: size(admin, 2))
    await admin.patch(k.VMIS, name, HOSTED, {"status": {"evacuationNodeName": ""}})
    await tells(admin, "")
    await eventually(lambda: size(admin, 1))

    async def alone() -> bool:
        found = await admin.list(k.MACHINES, HOSTED)
        return [one["metadata"]["name"] for one in found if not _going(one)] == [name]

    await eventually(alone)

    # Meant seriously: a new machine comes while this one works on, whatever the provider thinks of it. Moving is of no
    # use where it would lose its address.
    await evict(admin, name, migratable=True)
    await tells(admin, "Replacing", "its address would not follow it")
    await tells(admin, "Replacing", "a new machine comes first")
    await evict(admin, name, migratable=False)
    await tells(admin, "Replacing", "PVC is not shared")
    await provider_looks(admin, name, "10.9.9.2")
    failed = (await admin.get(k.KUBEVIRTMACHINES, name, HOSTED))["status"].get("failureReason")
    assert not failed, "a drain that may be called off is no failure"
    assert await runs_on()
    assert not _going(await admin.get(k.MACHINES, name, HOSTED))
    gone = [one["metadata"]["name"] for one in await admin.list(k.MACHINES, HOSTED) if _going(one)]
    new = await machine_beside(admin, name, *gone)

    # Its node is drained, with the budget of its tenant, and it runs as long as that takes.
    async def drained() -> bool:
        node = await admin.get(k.NODES, name)
        return _going(await admin.get(k.MACHINES, name, HOSTED)) and bool(node["spec"].get("unschedulable"))

    await eventually(drained)
    await tells(admin, "Replacing", "it is drained and goes")
    await provider_looks(admin, name, "10.9.9.3")
    assert await runs_on()
    await admin.delete(k.PDBS, "web", "default")

    async def evicted() -> bool:
        pod = await admin.get_or_none(k.PODS, "web", "default")
        if pod is not None and _going(pod):
            await admin.delete(k.PODS, "web", "default", grace=0, missing_ok=True)  # as its kubelet would
        return pod is None

    await eventually(evicted)

    async def replaced() -> bool:
        names = [one["metadata"]["name"] for one in await admin.list(k.MACHINES, HOSTED)]
        return names == [new] and await admin.get_or_none(k.VIRTUALMACHINES, name, HOSTED) is None

    await eventually(replaced)
    await admin.delete(k.VMIS, name, HOSTED)
    await tells(admin, "")
    await eventually(lambda: size(admin, 1))
    assert "ReplacingNode" in await reasons(admin)
    assert not await admin.list(k.VMI_MIGRATIONS, HOSTED)


async def size(client: Client, wanted: int) -> bool:
    return bool((await client.get(k.MACHINEDEPLOYMENTS, "demo", HOSTED))["spec"]["replicas"] == wanted)


def _going(item: Object) -> bool:
    return bool(item["metadata"].get("deletionTimestamp"))
