"""A management cluster is lost while machines run on another cluster; a second one takes them over as they are.

Cluster API's managers and the operator are real on both. What KubeVirt and kubelets would do is done by hand on a third
server, which is the infra cluster and, as no VM really runs, the guest's API too.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support import crds as crds_support
from tests.support import management as s
from tests.support import node_pools as pools
from tests.support.api_server import ApiServer
from tests.support.cluster_api_place import boot, install, known_to_cluster_api
from tests.support.definitions import VIRTUALIZATION, real
from tests.support.eventually import eventually
from tests.support.node_pools import Object
from tests.support.security.managers import Managers

from hcp.api import names
from hcp.backup import adopting, collecting, objects
from hcp.backup.objects import Kept
from hcp.cli.engine.command import Call
from hcp.cli.restore.command import COMMAND
from hcp.cli.restore.machines import bring_back
from hcp.controlplane.copies import infra_credentials
from hcp.hostedcluster.translate import params
from hcp.kube import Client, load_config
from hcp.kube import resources as k

HOME, HOSTED, ID, VMS = "teams", "teams-demo", "demo-abcde", "vms"
GIVEN, LOGIN, LEASES = "demo-infra-credentials", "demo-admin-kubeconfig", "kube-node-lease"
ROOT = "spec.platform.kubevirt.rootVolume"
CREDENTIALS = {"infraNamespace": VMS, "infraKubeConfigSecret": {"name": GIVEN, "key": "kubeconfig"}}
pytestmark = pytest.mark.timeout(1800)


@dataclass
class Management:
    """A management cluster in which a hosted cluster runs, as far as machines are concerned."""

    client: Client
    managers: Managers
    writes: list[tuple[str, str]]


@pytest.fixture
def servers(tmp_path: Path, bin_dir: Path) -> Iterator[list[ApiServer]]:
    """Two management clusters and an infra cluster."""
    with contextlib.ExitStack() as stack:
        made = []
        for name in ("first", "second", "infra"):
            (tmp_path / name).mkdir()
            made.append(stack.enter_context(s.management_server(tmp_path / name, bin_dir)))
        yield made


@pytest.fixture
async def infra(servers: list[ApiServer]) -> AsyncIterator[Client]:
    async with Client(load_config(servers[2].kubeconfig)) as client:
        await crds_support.install(client, real(*VIRTUALIZATION))
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": VMS}})
        yield client


@contextlib.asynccontextmanager
async def running(server: ApiServer, infra: ApiServer, folder: Path) -> AsyncIterator[Management]:
    """Everything but node pools."""
    async with Client(load_config(server.kubeconfig)) as client:
        await install(client, server, HOME)
        cluster = await pools.hosted_cluster(client, HOME, infra.kubeconfig, credentials=CREDENTIALS)
        text = infra.kubeconfig.read_bytes()
        await client.create(infra_credentials(params(cluster), text, VMS))
        content = {"kubeconfig": base64.b64encode(text).decode()}
        for name in (GIVEN, LOGIN):
            meta = {"name": name, "namespace": HOME}
            await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": content})
        status = {"kubeconfig": {"name": LOGIN}}
        await client.patch(k.HOSTEDCLUSTERS, "demo", HOME, {"status": status}, subresource="status")
        await known_to_cluster_api(client, cluster, infra.kubeconfig, credentials=True)
        folder.mkdir()
        managers = Managers(server, folder)
        await managers.start(client)
        try:
            async with pools.running_operator(server.kubeconfig) as writes:
                yield Management(client, managers, writes)
        finally:
            managers.stop()


async def virtual_machines(infra: Client) -> dict[str, tuple[str, str]]:
    """By name: which object, and whether anybody has written it since."""
    found = await infra.list(k.VIRTUALMACHINES, VMS)
    return {one["metadata"]["name"]: (one["metadata"]["uid"], one["metadata"]["resourceVersion"]) for one in found}


async def instances(infra: Client) -> dict[str, str]:
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in await infra.list(k.VMIS, VMS)}


async def booted(here: Management, infra: Client, count: int) -> list[str]:
    """Wait for this many VMs, boot them, and wait until Cluster API counts all of them as nodes."""

    async def made() -> list[str] | None:
        found = sorted(await virtual_machines(infra))
        return found if len(found) == count else None

    found = await eventually(made, f"{count} VMs")
    for name in set(found) - set(await instances(infra)):
        await boot(infra, VMS, name)
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        await infra.apply({**lease, "metadata": {"name": name, "namespace": LEASES}})
    await eventually(lambda: whole(here, count), f"{count} nodes")
    return found


async def whole(here: Management, count: int) -> bool:
    """All machines run, and the deployment has nothing left to do."""
    machines = await here.client.list(k.MACHINES, HOSTED)
    phases = [(one["status"].get("phase"), bool(one["status"].get("nodeRef"))) for one in machines]
    assert phases == [("Running", True)] * count, phases
    pool = await here.client.get(k.NODEPOOLS, "demo", HOME)
    told = {one["type"]: one["status"] for one in pool["status"]["conditions"]}
    assert pool["status"]["replicas"] == count and told["AllNodesHealthy"] == "True", told
    assert [told[f"Updating{one}"] for one in ("Config", "PlatformMachineTemplate", "Version")] == ["False"] * 3, told
    deployment = await here.client.get(k.MACHINEDEPLOYMENTS, "demo", HOSTED)
    status = deployment["status"]
    assert status["observedGeneration"] == deployment["metadata"]["generation"]
    return bool(status["updatedReplicas"] == status["availableReplicas"] == status["replicas"] == count)


async def backed_up(here: Management) -> Kept:
    """The objects of a backup, as they come out of its file."""
    for name in objects.KEYS:
        meta = {"name": name, "namespace": HOSTED}
        content = {"k": base64.b64encode(name.encode()).decode()}
        await here.client.apply({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": content})
    return objects.accept(await collecting.collect(here.client, HOME, "demo"), HOME, "demo")


def asked(**flags: bool) -> Call:
    call = Call("hcp", COMMAND)
    call.values = {"no-node-pools": False, "new-machines": False, "force": False, "timeout": 0, **flags}
    return call


@contextlib.asynccontextmanager
async def kubelets(guest: Client, *nodes: str) -> AsyncIterator[None]:
    """Nodes that report."""

    async def beat() -> None:
        for number in itertools.count():
            for node in nodes:
                await guest.patch(k.LEASES, node, LEASES, {"metadata": {"annotations": {"beat": str(number)}}})
            await asyncio.sleep(0.2)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


async def known(here: Management, count: int) -> bool:
    machines = await here.client.list(k.MACHINES, HOSTED)
    return [bool(one.get("status", {}).get("nodeRef")) for one in machines] == [True] * count


async def healthy(here: Management, count: int) -> bool:
    check = await here.client.get(k.MACHINEHEALTHCHECKS, "demo", HOSTED)
    return bool(check["status"].get("currentHealthy") == count)


def pool(**spec: Any) -> Object:
    return pools.node_pool(HOME, **spec)


async def settled(here: Management) -> None:
    """Nobody is on the way to do more: a pass that somebody asks for writes nothing."""

    async def look_again(word: str) -> None:
        await here.client.patch(k.NODEPOOLS, "demo", HOME, {"metadata": {"annotations": {"test/look": word}}})

    await pools.pool_rests(here.writes, ("nodepool",), look_again)


async def test_machines_are_taken_over_without_being_touched(
    servers: list[ApiServer], infra: Client, tmp_path: Path
) -> None:
    first, second, third = servers
    async with running(first, third, tmp_path / "one") as here:
        repaired = {"autoRepair": True, "upgradeType": "Replace"}
        await here.client.create(pool(replicas=2, management=repaired))
        names_of = await booted(here, infra, 2)
        kept = await backed_up(here)
        before = await here.client.get(k.NODEPOOLS, "demo", HOME)
    first.stop()
    vms, vmis = await virtual_machines(infra), await instances(infra)

    async with running(second, third, tmp_path / "two") as there:
        plan = await adopting.look(there.client, kept)
        assert sorted(plan.names) == names_of and not plan.unknown
        # It waits for nodes that do not find the API yet: whoever watches over them comes later.
        restore = asyncio.create_task(bring_back(asked(), there.client, kept))
        await eventually(lambda: known(there, 2), "Cluster API knows them")
        assert not restore.done() and not await there.client.list(k.NODEPOOLS, HOME)
        restore.cancel()
        with pytest.raises(asyncio.CancelledError):
            await restore
        await infra.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "of-a-lost-machine"}})
        async with kubelets(infra, *names_of):
            await bring_back(asked(), there.client, kept)
        assert await infra.get_or_none(k.NODES, "of-a-lost-machine") is None
        await eventually(lambda: whole(there, 2), "two nodes again")
        await settled(there)
        await eventually(lambda: healthy(there, 2), "whoever watches over them finds them well")
        assert (await virtual_machines(infra), await instances(infra)) == (vms, vmis), "a VM was written or made"
        [machine_set] = await there.client.list(k.MACHINESETS, HOSTED)
        deployment = await there.client.get(k.MACHINEDEPLOYMENTS, "demo", HOSTED)
        assert machine_set["metadata"]["ownerReferences"][0]["uid"] == deployment["metadata"]["uid"]
        after = await there.client.get(k.NODEPOOLS, "demo", HOME)
        marks = (names.MARK_CURRENT_CONFIG, names.MARK_CURRENT_TEMPLATE)
        assert [after["metadata"]["annotations"][key] for key in marks] == [
            before["metadata"]["annotations"][key] for key in marks
        ]
        await bring_back(asked(), there.client, kept)
        assert (await adopting.look(there.client, kept)) == adopting.Plan(), "a second restore has nothing to do"

        # They are its machines: one that is asked for is made, and with the pool they go.
        await there.client.patch(k.NODEPOOLS, "demo", HOME, {"spec": {"replicas": 3}})
        grown = await booted(there, infra, 3)
        assert set(names_of) < set(grown)
        data = await infra.list(k.SECRETS, VMS)
        assert b"Authorization" in base64.b64decode(data[0]["data"]["userdata"]), "new machines boot from a document"
        await there.client.delete(k.NODEPOOLS, "demo", HOME)

        async def gone() -> bool:
            for name in grown:
                await infra.delete(k.NODES, name, missing_ok=True)
            return not await virtual_machines(infra)

        await eventually(gone, "the machines went with their pool")


async def test_what_is_lost_is_made_anew_and_what_is_not_known_is_told(
    servers: list[ApiServer], infra: Client, tmp_path: Path
) -> None:
    first, second, third = servers
    async with running(first, third, tmp_path / "one") as here:
        scaling = {"min": 1, "max": 5}
        wanted = pool(replicas=None, autoScaling=scaling)
        await here.client.create(crds_support.changed(wanted, f"{ROOT}.cacheStrategy", {"type": "PVC"}))
        await booted(here, infra, 1)
        await here.client.patch(k.MACHINEDEPLOYMENTS, "demo", HOSTED, {"spec": {"replicas": 3}}, manager="autoscaler")
        known = await booted(here, infra, 3)
        kept = await backed_up(here)
        # After the backup one more comes.
        await here.client.patch(k.MACHINEDEPLOYMENTS, "demo", HOSTED, {"spec": {"replicas": 4}}, manager="autoscaler")
        await booted(here, infra, 4)
    first.stop()
    late = sorted(set(await virtual_machines(infra)) - set(known))
    lost, *stayed = known
    await infra.delete(k.VMIS, lost, VMS)
    await infra.delete(k.VIRTUALMACHINES, lost, VMS)
    await infra.delete(k.NODES, lost)
    vms = await virtual_machines(infra)

    async with running(second, third, tmp_path / "two") as there:
        plan = await adopting.look(there.client, kept)
        assert (sorted(plan.names), plan.unknown) == (stayed, late)
        async with kubelets(infra, *stayed):
            await bring_back(asked(), there.client, kept)

        async def replaced() -> set[str] | None:
            return set(await virtual_machines(infra)) - set(vms) or None

        [made] = await eventually(replaced, "the lost machine is made anew")
        await boot(infra, VMS, made)
        await eventually(lambda: whole(there, 3), "three nodes: the load had asked for that many")
        await settled(there)
        now = await virtual_machines(infra)
        assert {name: now[name] for name in vms} == vms
        assert set(now) == {*vms, made}
        [cache] = await infra.list(k.DATAVOLUMES, VMS, names.LABEL_BOOT_IMAGE_ROLE)
        mine = (await there.client.get(k.NODEPOOLS, "demo", HOME))["metadata"]["uid"]
        assert cache["metadata"]["labels"][names.LABEL_NODEPOOL_UID] == mine, "the cache goes with the pool from now on"


async def test_nodes_that_would_not_find_the_api_are_replaced_one_after_another(
    servers: list[ApiServer], infra: Client, tmp_path: Path
) -> None:
    first, second, third = servers
    async with running(first, third, tmp_path / "one") as here:
        await here.client.create(pool(replicas=1))
        [old] = await booted(here, infra, 1)
        kept = await backed_up(here)
    first.stop()
    async with running(second, third, tmp_path / "two") as there:
        status = {"controlPlaneEndpoint": {"host": "192.0.2.7", "port": 6443}}
        await there.client.patch(k.HOSTEDCLUSTERS, "demo", HOME, {"status": status}, subresource="status")
        assert adopting.moved(kept, await there.client.get(k.HOSTEDCLUSTERS, "demo", HOME))
        await bring_back(asked(), there.client, kept)

        async def second_machine() -> str | None:
            return next(iter(set(await virtual_machines(infra)) - {old}), None)

        new = await eventually(second_machine, "a machine that knows the new address")
        assert old in await virtual_machines(infra), "the old one runs on until the new one is a node"
        await boot(infra, VMS, new)

        async def old_gone() -> bool:
            await infra.delete(k.NODES, old, missing_ok=True)
            return set(await virtual_machines(infra)) == {new}

        await eventually(old_gone, "the old machine went")


async def test_machines_of_another_cluster_on_the_same_infra_are_left_alone(
    servers: list[ApiServer], infra: Client, tmp_path: Path
) -> None:
    first, second, third = servers
    async with running(first, third, tmp_path / "one") as here:
        await here.client.create(pool(replicas=1))
        [name] = await booted(here, infra, 1)
        kept = await backed_up(here)
    await infra.patch(k.VIRTUALMACHINES, name, VMS, {"metadata": {"labels": {names.LABEL_INFRA_ID: "other"}}})
    async with Client(load_config(second.kubeconfig)) as client:
        await install(client, second, HOME)
        assert await adopting.look(client, kept) == adopting.Plan()
