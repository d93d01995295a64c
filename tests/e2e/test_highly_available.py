"""A highly available control plane on three nodes: nodes, members and wires are taken away while clients go on.

What clients see is printed; the bounds are those that were promised, far from what is seen.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.e2e.connections import Asking, steadily
from tests.support.e2e.control_planes import NS, available, condition, create
from tests.support.e2e.hosted_tools import ON, kept, leave, with_control_planes
from tests.support.e2e.ledger import Ledger, writing
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.e2e.next_release import push_next
from tests.support.e2e.partition import partitioned
from tests.support.eventually import eventually, eventually_sync

from hcp.kube import ClusterConfig, load_config
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout

NAME = ON or "e2e-ha"
CLUSTER = "spread"
HOSTED = f"{NS}-{CLUSTER}"
BEFORE, AFTER = 60.0, 120.0

pytestmark = pytest.mark.timeout(5400)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("ha")
    with with_control_planes(NAME, folder, "--nodes", "3") as found:
        try:
            if not kept(found, CLUSTER):
                create(
                    *(found, folder, CLUSTER, "--control-plane-availability-policy", "HighlyAvailable"),
                    publish={"type": "Route"},
                )
            available(found, CLUSTER)
            whole(found)
            yield found
        finally:
            leave(found, CLUSTER)


def whole(management: Cluster) -> None:
    """All replicas are there."""
    eventually_sync(lambda: condition(management, CLUSTER, "Degraded").get("status") == "False", "all replicas", 1200)


def address() -> str:
    spec = specs.load(Layout.of(NAME))
    assert spec is not None
    return spec.addresses.router


def kubeconfig(management: Cluster) -> Path:
    path = management.kubeconfig.with_name("spread.kubeconfig")
    path.write_text(hcp("create", "kubeconfig", "--name", CLUSTER, "--kubeconfig", str(management.kubeconfig)).stdout)
    return path


def guest(management: Cluster) -> ClusterConfig:
    """Through the router, by name, without a resolver."""
    config = load_config(kubeconfig(management))
    host = config.server.removeprefix("https://").rpartition(":")[0]
    return config.with_server(f"https://{address()}:443", host)


def where(management: Cluster, app: str) -> dict[str, str]:
    pods = management.get("pods", "-n", HOSTED, "-l", f"app={app}")["items"]
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods}


def fresh(run: str) -> str:
    """A ledger's name that no run before this one has used on a cluster that was kept."""
    return f"{run}-{int(time.time())}"


def uids(management: Cluster, app: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in management.get("pods", "-n", HOSTED, "-l", f"app={app}")["items"]}


async def further(ledger: Ledger, rounds: int) -> None:
    async def written() -> bool:
        return ledger.counted >= rounds

    await eventually(written, "writes go on", seconds=1200)


def test_replicas_are_spread_over_the_nodes(management: Cluster) -> None:
    for app in ("etcd", "kube-apiserver"):
        placed = where(management, app)
        assert len(placed) == len(set(placed.values())) == 3, placed


def test_each_member_is_for_the_api_server_of_its_node(management: Cluster) -> None:
    def hinted() -> bool:
        slices = management.get("endpointslices", "-n", HOSTED, "-l", "kubernetes.io/service-name=etcd-client")["items"]
        found = [one for part in slices for one in part["endpoints"] or ()]
        nodes = {one["nodeName"]: [hint["name"] for hint in one.get("hints", {}).get("forNodes", ())] for one in found}
        return len(nodes) == 3 and all(hints == [name] for name, hints in nodes.items())

    eventually_sync(hinted, "kube-proxy is told whose member is whose", 300)


async def test_a_lost_node_is_hardly_noticed_and_nothing_that_was_acknowledged_is_lost(management: Cluster) -> None:
    """20 new connections a second, a second for each, none tried again."""
    asking = Asking(kubeconfig(management), address())
    async with writing(guest(management), fresh("lost")) as ledger, steadily(asking) as answers:
        await asyncio.sleep(BEFORE)
        since = time.monotonic()
        await asyncio.to_thread(hcp, "local", "node", "stop", "3", "--now", "--name", NAME)
        await asyncio.sleep(AFTER - (time.monotonic() - since))
    print(f"\nnode lost: {answers.table(since)}; {ledger.tried} rounds of writes, {ledger.failures} without an answer")
    assert answers.share >= 0.99
    assert answers.last_failure(since) <= 15
    assert len(ledger.made) > 100
    hcp("local", "node", "start", "3", "--name", NAME)
    whole(management)


async def test_an_upgrade_is_not_noticed(management: Cluster, tmp_path: Path) -> None:
    """Every pod of the control plane becomes another one, etcd's members too; the same pace of new connections."""
    status = management.get("hostedcluster", CLUSTER, "-n", NS)["status"]
    minor, _, patch = status["version"]["history"][0]["version"].rpartition(".")
    image = await push_next(NAME, tmp_path, version=f"{minor}.{int(patch) + 1}")
    rolled = {app: uids(management, app) for app in ("etcd", "kube-apiserver", "kube-controller-manager")}
    asking = Asking(kubeconfig(management), address())
    async with writing(guest(management), fresh("upgraded")) as ledger, steadily(asking) as answers:
        since = time.monotonic()
        words = ("upgrade", "cluster", CLUSTER, "--release-image", image, "--wait", "--timeout", "40m")
        await asyncio.to_thread(hcp, *words, "--kubeconfig", str(management.kubeconfig))
        await asyncio.to_thread(whole, management)
        took = time.monotonic() - since
    written = f"{ledger.tried} rounds of writes, {ledger.failures} without an answer"
    print(f"\nupgraded in {took:.0f} s: {answers.table(since)}; {written}")
    for app, before in rolled.items():
        assert not before & uids(management, app), f"{app} was not rolled"
    assert answers.share >= 0.999


async def test_members_of_etcd_are_killed_one_after_the_other(management: Cluster) -> None:
    async with writing(guest(management), fresh("killed")) as ledger:
        for member in ("etcd-0", "etcd-1", "etcd-2"):
            before = ledger.tried
            await asyncio.to_thread(
                management.kubectl, "delete", "pod", member, "-n", HOSTED, "--grace-period=0", "--force"
            )
            await further(ledger, before + 20)
            await asyncio.to_thread(whole, management)
    print(f"\nmembers killed: {ledger.tried} rounds of writes, {ledger.failures} without an answer")


async def test_members_that_cannot_reach_each_other_lose_and_repeat_nothing(management: Cluster) -> None:
    async with writing(guest(management), fresh("split")) as ledger:
        for one, other in ((2, 3), (1, 3)):
            with partitioned(NAME, one, other):
                before = ledger.tried
                await further(ledger, before + 50)
            await asyncio.to_thread(whole, management)
    print(f"\npartitioned: {ledger.tried} rounds of writes, {ledger.failures} without an answer")


def volumes(management: Cluster) -> dict[str, str]:
    """Of etcd's members: which claim is which."""
    found = management.get("pvc", "-n", HOSTED)["items"]
    return {
        one["metadata"]["name"]: one["metadata"]["uid"] for one in found if one["metadata"]["name"].startswith("data-")
    }


def members(management: Cluster, number: int) -> bool:
    """So many members, all ready, and nothing being done about them."""
    said = condition(management, CLUSTER, "EtcdAvailable")
    return said.get("status") == "True" and said.get("message") == f"{number} of {number} members are ready"


async def test_a_member_that_lost_its_volume_is_replaced_by_itself(management: Cluster) -> None:
    async with writing(guest(management), fresh("replaced")) as ledger:
        before = volumes(management)["data-etcd-1"]
        management.kubectl("delete", "pvc", "data-etcd-1", "-n", HOSTED, "--wait=false")
        management.kubectl("delete", "pod", "etcd-1", "-n", HOSTED, "--wait=false")

        def replaced() -> bool:
            return volumes(management).get("data-etcd-1", before) != before and members(management, 3)

        await asyncio.to_thread(eventually_sync, replaced, "another member with another volume", 1200)
        await further(ledger, ledger.counted + 50)
    print(f"\nmember replaced: {ledger.tried} rounds of writes, {ledger.failures} without an answer")


async def test_a_control_plane_becomes_a_single_one_and_highly_available_again(management: Cluster) -> None:
    async with writing(guest(management), fresh("resized")) as ledger:
        for policy, number in (("SingleReplica", 1), ("HighlyAvailable", 3)):
            patch = f'{{"spec":{{"controllerAvailabilityPolicy":"{policy}"}}}}'
            management.kubectl("patch", "hostedcluster", CLUSTER, "-n", NS, "--type=merge", "-p", patch)

            def changed(number: int = number) -> bool:
                return len(volumes(management)) == number and members(management, number)

            await asyncio.to_thread(eventually_sync, changed, f"{number} members and as many volumes", 1500)
            await asyncio.to_thread(whole, management)
            await further(ledger, ledger.counted + 50)
    print(f"\nresized: {ledger.tried} rounds of writes, {ledger.failures} without an answer")
