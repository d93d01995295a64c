"""Members of etcd come, go and come back: the operator as it is, and an etcd process for each member.

All the while a client writes through the hosted API server; what was acknowledged must be there at the end.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support import management as s
from tests.support.api_server import free_port
from tests.support.e2e.ledger import Ledger, writing
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, hands, rests, says, told
from tests.support.member_pods import MemberPods
from tests.support.registry import Registry

from hcp.controlplane.etcd import MEMBERS_CONFIG
from hcp.etcd.client import Etcd, Identity, Peer
from hcp.hostedcluster.etcd_membership import EtcdMembership
from hcp.kube import Client, ClusterConfig, untrusted_kubeconfig
from hcp.kube import resources as k
from hcp.operator import wiring

NAME = "members"
NS = f"clusters-{NAME}"
Begin = Callable[[str], Any]

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
async def begin(
    admin: Client,
    operator: Callable[[], Running],
    image: str,
    registry: Registry,
    tmp_path: Path,
    bin_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Begin]:
    """Brings a cluster up, with the operator that knows the way to its members."""
    port = free_port()
    pods = MemberPods(tmp_path, bin_dir, admin, NS, port)

    async def up(policy: str) -> MemberPods:
        monkeypatch.setattr(wiring, "EtcdMembership", partial(EtcdMembership, where=pods.where, peer=pods.peer))
        operator()
        await eventually(lambda: gone(admin, NAME), "the cluster of the test before is gone", pods.volumes_go)
        networking = {
            "networkType": "Other",
            "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
            "apiServer": {"port": port},
        }
        spec = {"networking": networking, "controllerAvailabilityPolicy": policy}
        await s.create(admin, NAME, image, registry, **spec)
        await pods.begin()
        await eventually(lambda: says(admin, NAME, "Available", "True"), "Available", hands(admin, NS))
        return pods

    yield up
    await pods.end()
    await admin.delete(k.HOSTEDCLUSTERS, NAME, "clusters", missing_ok=True)


async def guest(admin: Client) -> ClusterConfig:
    found = await admin.get(k.SECRETS, f"{NAME}-admin-kubeconfig", "clusters")
    return untrusted_kubeconfig.load(base64.b64decode(found["data"]["kubeconfig"]))


async def peers(admin: Client, pods: MemberPods) -> dict[str, Peer]:
    """As etcd itself knows its members, by name."""
    data = {
        key: base64.b64decode(value)
        for key, value in (await admin.get(k.SECRETS, "etcd-client-tls", NS))["data"].items()
    }
    async with Etcd(pods.etcd_url, Identity(data["ca.crt"], data["etcd-client.crt"], data["etcd-client.key"])) as etcd:
        return {one.name or one.url: one for one in await etcd.members()}


async def whole(admin: Client, pods: MemberPods, number: int) -> dict[str, Peer] | None:
    """So many members, each of them ready and with a vote."""
    found = await peers(admin, pods)
    votes = [one for one in found.values() if one.name and not one.learner]
    ready = sum(place.ready for place in pods.places)
    return found if len(votes) == len(found) == ready == number else None


async def further(ledger: Ledger, rounds: int) -> None:
    goal = ledger.counted + rounds

    async def written() -> bool:
        return ledger.counted >= goal

    await eventually(written, "writes go on")


async def test_a_member_that_lost_its_data_comes_back_as_a_learner_and_then_votes(admin: Client, begin: Begin) -> None:
    pods = await begin("HighlyAvailable")
    before = await eventually(lambda: whole(admin, pods, 3), "three members")

    async def closed() -> bool:
        data = (await admin.get(k.CONFIGMAPS, MEMBERS_CONFIG, NS))["data"]
        return bool(data["state"] == "existing" and data["members"].startswith("nobody="))

    await eventually(closed, "nobody founds a cluster any more")
    await eventually(lambda: rests(admin, NAME), "nothing is written to a cluster that is whole")
    async with writing(await guest(admin), "lost") as ledger:
        await further(ledger, 20)
        for index in (1, 0):
            name = f"etcd-{index}"
            await pods.lose(index)
            await eventually(partial(told, admin, NAME, "EtcdAvailable", "True", name), "it is said who is replaced")

            async def replaced(name: str = name) -> bool:
                now = await whole(admin, pods, 3)
                return now is not None and now[name].id != before[name].id

            await eventually(replaced, f"{name} is another member, and votes")
            await further(ledger, 20)
    events = {one["reason"] for one in await admin.list(k.EVENTS, "clusters")}
    assert {"EtcdMemberLost", "EtcdMemberJoined"} <= events
    await eventually(closed, "and nobody may join any more")
    await eventually(lambda: rests(admin, NAME), "nothing is written any more")
    assert (await s.condition(admin, NAME, "EtcdAvailable"))["message"] == "3 of 3 members are ready"


async def test_two_lost_members_found_no_cluster_of_their_own(admin: Client, begin: Begin) -> None:
    pods = await begin("HighlyAvailable")
    await eventually(lambda: whole(admin, pods, 3), "three members")

    async def closed() -> bool:
        return bool((await admin.get(k.CONFIGMAPS, MEMBERS_CONFIG, NS))["data"]["state"] == "existing")

    await eventually(closed, "the cluster is founded")
    for index in (1, 2):
        await pods.lose(index)
    said = await eventually(
        lambda: told(admin, NAME, "EtcdAvailable", "False", "restore the cluster from a backup"), "the way back is said"
    )
    assert "etcd-1 and etcd-2" in said["message"]
    assert not any(place.ready for place in pods.places), "two without data are no majority of anything"


async def test_a_cluster_grows_and_shrinks_while_clients_write(admin: Client, begin: Begin) -> None:
    pods = await begin("SingleReplica")
    single = await admin.get(k.STATEFULSETS, "etcd", NS)
    assert await admin.get_or_none(k.CONFIGMAPS, MEMBERS_CONFIG, NS) is None, "one alone costs nothing more"
    async with writing(await guest(admin), "grown") as ledger:
        await further(ledger, 20)
        for policy, number in (("HighlyAvailable", 3), ("SingleReplica", 1), ("HighlyAvailable", 3)):
            await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"spec": {"controllerAvailabilityPolicy": policy}})
            await eventually(partial(whole, admin, pods, number), f"{number} members")

            async def done(number: int = number) -> bool:
                data = (await admin.get(k.CONFIGMAPS, MEMBERS_CONFIG, NS))["data"]
                named = {f"data-etcd-{index}" for index in range(number)}
                settled = not {"joining", "target"} & set(data) and data["replicas"] == str(number)
                return settled and await pods.claims() == named

            await eventually(done, "the record is settled, and no volume is left over")
            await further(ledger, 20)
            now = await admin.get(k.STATEFULSETS, "etcd", NS)
            assert now["spec"]["replicas"] == number
            if number == 1:
                assert now["spec"]["template"] == single["spec"]["template"]
            else:
                # It stayed as it was until others could do without it.
                await eventually(lambda: _true(pods.rolls.count("etcd-0") >= 1), "the first member is rolled last")
                assert not {"etcd-1", "etcd-2"} & set(pods.rolls)
    await eventually(lambda: whole(admin, pods, 3), "three members")
    await eventually(lambda: rests(admin, NAME), "nothing is written any more")


async def _true(value: bool) -> bool:
    return value
