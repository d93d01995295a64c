"""cluster-autoscaler itself moves our MachineDeployments: from zero, back to zero, within bounds, and says why not.

Two real API servers are the management cluster and the guest, with a real scheduler; the test plays Cluster API and
machines. The pools, the rights in both clusters and the words of the command line are the ones the operator writes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.autoscaling_place import NS, QUICK, Place, place
from tests.support.cluster_api_hands import MARK
from tests.support.eventually import eventually

from hcp.kube import resources as k

pytestmark = pytest.mark.timeout(1800)
# Megabytes of its own that one may hold; the program's file comes to it, up to 70.
BUDGET = 40


@pytest.fixture
async def here(tmp_path: Path, bin_dir: Path) -> AsyncIterator[Place]:
    async with place(tmp_path, bin_dir) as made:
        yield made


async def reaches(here: Place, pool: str, size: int) -> None:
    async def reached() -> bool:
        return await here.size(pool) == size

    await eventually(reached, f"pool {pool} has {size}")


async def run(here: Place, count: int) -> None:
    async def all_of_them() -> bool:
        return await here.running() == count

    await eventually(all_of_them, f"{count} pods run")


async def nodes(here: Place) -> set[str]:
    return {one["metadata"]["name"] for one in await here.guest.list(k.NODES)}


async def test_ten_waiting_pods_get_nodes_from_nothing_and_idle_nodes_go_again(here: Place) -> None:
    await here.pool("load", autoScaling={"min": 0, "max": 5})
    await here.start()
    await here.looks(3)
    assert await here.size("load") == 0
    before = here.written()
    await here.looks(5)
    assert here.written() == before == [], "an idle one writes nothing"
    own, file = here.memory()
    print(f"\nan idle autoscaler: {own} MB of its own, {file} MB of its file")
    assert own <= BUDGET

    await here.pods(10)
    # Four cores a node, a half for each pod, a little for what runs on every node.
    await reaches(here, "load", 2)
    await run(here, 10)
    assert len(await nodes(here)) == 2

    await here.no_pods()
    await reaches(here, "load", 0)

    async def alone() -> bool:
        return not await nodes(here)

    await eventually(alone, "the nodes are gone")
    assert here.refused() == [], "it has all the rights that it uses"
    before = here.written()
    await here.looks(5)
    assert here.written() == before, "an idle one writes nothing"
    own, file = here.memory()
    print(f"after work: {own} MB of its own, {file} MB of its file")
    assert own <= BUDGET


async def test_the_idle_node_goes_and_the_busy_one_stays(here: Place) -> None:
    await here.pool("load", autoScaling={"min": 1, "max": 5})
    await here.start()
    await reaches(here, "load", 1)
    await here.pods(10)
    await run(here, 10)
    where = {one["metadata"]["name"]: one["spec"]["nodeName"] for one in await here.guest.list(k.PODS, "default")}
    busy = where["p-0"]
    for name, node in where.items():
        if node != busy:
            await here.guest.delete(k.PODS, name, "default", grace=0)
    await reaches(here, "load", 1)

    async def only_one() -> bool:
        return await nodes(here) == {busy}

    await eventually(only_one, "the Machine that was marked went, not another one")
    await here.no_pods()
    await here.looks(8)
    assert await here.size("load") == 1, "the lower bound holds"
    assert here.hands.ended and busy not in here.hands.ended


async def test_labels_and_taints_of_a_pool_without_nodes_are_known(here: Place) -> None:
    taint = {"key": "batch", "value": "only", "effect": "NoSchedule"}
    await here.pool("plain", autoScaling={"min": 0, "max": 3})
    await here.pool("batch", autoScaling={"min": 0, "max": 3}, nodeLabels={"tier": "batch"}, taints=[taint])
    await here.start()
    tolerates = [{"key": "batch", "operator": "Equal", "value": "only", "effect": "NoSchedule"}]
    await here.pods(1, prefix="batch", nodeSelector={"tier": "batch"}, tolerations=tolerates)
    await run(here, 1)
    assert (await here.size("plain"), await here.size("batch")) == (0, 1)
    await here.pods(1, prefix="plain")
    await run(here, 2)
    assert (await here.size("plain"), await here.size("batch")) == (1, 1)


async def test_pools_that_are_alike_grow_alike_and_none_past_its_end(here: Place) -> None:
    for name in ("one", "two"):
        await here.pool(name, autoScaling={"min": 1, "max": 3})
    await here.start()
    await here.pods(30)
    # Eight on each node: two more are needed, one of each pool.
    await run(here, 30)
    assert (await here.size("one"), await here.size("two")) == (2, 2)
    await here.pods(30, prefix="more")

    async def told() -> bool:
        events = await here.guest.list(k.EVENTS, "default")
        return any(one["reason"] == "NotTriggerScaleUp" and "max node group size" in one["message"] for one in events)

    await eventually(told, "the pods that wait say why")
    assert (await here.size("one"), await here.size("two")) == (3, 3)


async def test_knobs_of_the_cluster_hold(here: Place) -> None:
    await here.pool("load", autoScaling={"min": 0, "max": 9})
    await here.start({"scaling": "ScaleUpOnly", "maxNodesTotal": 2, "podPriorityThreshold": 0})
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": -1}
    await here.guest.create(low)
    await here.pods(3, prefix="low", priorityClassName="low")
    await here.looks(5)
    assert await here.size("load") == 0, "nobody makes a node for these"
    await here.pods(40)
    await reaches(here, "load", 2)
    await here.looks(5)
    assert await here.size("load") == 2, "no more than the cluster may have"
    for name in {one["metadata"]["name"] for one in await here.guest.list(k.PODS, "default")}:
        await here.guest.delete(k.PODS, name, "default", grace=0, missing_ok=True)
    await here.looks(8)
    assert await here.size("load") == 2, "nodes are never taken away"


async def test_a_pool_with_a_number_of_its_own_is_left_alone(here: Place) -> None:
    await here.pool("fixed", replicas=1)
    await here.pool("load", autoScaling={"min": 0, "max": 2})
    await here.start(QUICK)
    await here.looks(5)
    assert (await here.size("fixed"), await here.size("load")) == (1, 0), "idle, and still there"
    await here.pods(10)
    await run(here, 10)
    assert await here.size("fixed") == 1 and await here.size("load") >= 1
    marked = [
        one for one in await here.management.list(k.MACHINES, NS) if MARK in (one["metadata"].get("annotations") or {})
    ]
    assert not marked


async def test_a_machine_that_never_joins_is_given_up_and_another_pool_helps(here: Place) -> None:
    await here.pool("stuck", autoScaling={"min": 0, "max": 2}, cores=7)
    await here.pool("spare", autoScaling={"min": 0, "max": 2}, cores=9)
    here.hands.stuck.add("stuck")
    await here.start({**QUICK, "maxNodeProvisionTime": "5s", "expanders": ["LeastWaste"]})
    await here.pods(1, cpu="6")
    await reaches(here, "stuck", 1)
    await run(here, 1)
    assert await here.size("spare") == 1
    await reaches(here, "stuck", 0)
