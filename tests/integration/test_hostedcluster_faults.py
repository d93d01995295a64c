"""Killing the operator at any moment: the next process ends with exactly the right objects."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.hosted_operator import says
from tests.support.registry import Registry

from hcp.kube import Client, load_config
from hcp.kube import resources as k

ADDRESS = "127.0.0.1"
BETWEEN_WRITES = (1, 2, 3, 5, 8, 13, 21, 34, 45, 55)
AT_RANDOM = 22
WORKLOADS = ("Deployment", "StatefulSet")


@pytest.fixture
def server(tmp_path: Path, bin_dir: Path) -> Iterator[ApiServer]:
    with s.management_server(tmp_path, bin_dir) as made:
        yield made


@pytest.fixture(autouse=True)
def nobody_stays() -> Iterator[None]:
    """Not after a test that failed in between, either."""
    yield
    for one in Story.begun:
        one.kill()
    Story.begun.clear()


class Story:
    """One operator after the other over the same cluster."""

    begun: ClassVar[list[s.OperatorProcess]] = []

    def __init__(self, server: ApiServer, client: Client) -> None:
        self._server = server
        self._client = client
        self._operator: s.OperatorProcess | None = None
        self.kills = 0

    def begin(self, die_after_writes: int = 0) -> None:
        self._operator = s.OperatorProcess(self._server, die_after_writes=die_after_writes)
        self.begun.append(self._operator)

    def kill(self) -> None:
        if self._operator is not None:
            self._operator.kill()
            self._operator = None
            self.kills += 1

    async def until_dead(self, ns: str) -> None:
        """Let the operator run into its own end, or finish what there is to write before that."""
        assert self._operator is not None
        for _ in range(80):
            if self._operator.ended:
                break
            await s.give_address(self._client, ns, ADDRESS)
            await asyncio.sleep(0.05)
        self.kill()

    async def restarted(self, ns: str) -> bool:
        """As a kubelet does: an operator that could not renew its lease in time ends, whoever was slow."""
        if self._operator is not None and self._operator.ended:
            self.kill()
            self.begin()
        return await self.complete(ns)

    async def complete(self, ns: str) -> bool:
        await s.give_address(self._client, ns, ADDRESS)
        return await self._client.get_or_none(k.DEPLOYMENTS, "kube-apiserver", ns) is not None


async def absent(client: Client, name: str) -> bool:
    hosted = await client.get_or_none(k.NAMESPACES, f"clusters-{name}")
    return hosted is None and await client.get_or_none(k.HOSTEDCLUSTERS, name, "clusters") is None


async def test_kills_through_create_and_delete_leave_exactly_the_right_objects(
    server: ApiServer, registry: Registry, tmp_path: Path
) -> None:
    chance = random.Random(20260101)
    async with Client(load_config(server.kubeconfig)) as client:
        await s.prepare(client)
        image = await s.push_release(registry, tmp_path, "1.36.3")
        story = Story(server, client)

        # The yardstick: one cluster made without any trouble.
        story.begin()
        await s.create(client, "calm", image, registry)
        await eventually(lambda: story.complete("clusters-calm"), "calm is made")
        # What a pass found is said at its end, when all is written.
        await eventually(lambda: says(client, "calm", "InfrastructureReady", "True"), "and said")
        assert len(await made_of(client, "calm")) > 50
        story.kill()

        # Killed right after the n-th write, that is between two writes of one pass.
        await s.create(client, "storm", image, registry)
        for writes in BETWEEN_WRITES:
            story.begin(die_after_writes=writes)
            await story.until_dead("clusters-storm")
        # Killed at any moment.
        for _ in range(AT_RANDOM // 2):
            story.begin()
            await s.give_address(client, "clusters-storm", ADDRESS)
            await asyncio.sleep(chance.uniform(0.6, 1.6))
            story.kill()
        story.begin()
        await eventually(lambda: story.complete("clusters-storm"), "storm is made")
        await eventually(lambda: says(client, "storm", "InfrastructureReady", "True"), "and said")

        async def alike() -> bool:
            storm, calm = await made_of(client, "storm"), await made_of(client, "calm")
            assert storm == calm, storm ^ calm
            return True

        await eventually(alike, "both have the very same objects")
        found = await s.objects(client, "clusters-storm")
        s.verify_certificates(found)
        rolled = {key: o["metadata"]["generation"] for key, o in found.items() if key[0] in WORKLOADS}
        assert set(rolled.values()) == {1}, rolled
        story.kill()

        # And through the deletion of both.
        for name in ("calm", "storm"):
            await client.delete(k.HOSTEDCLUSTERS, name, "clusters")
        for number in range(AT_RANDOM // 2):
            story.begin(die_after_writes=number % 4 + 1 if number % 2 else 0)
            await asyncio.sleep(chance.uniform(0.6, 1.4))
            story.kill()
        story.begin()
        for name in ("calm", "storm"):
            await eventually(lambda n=name: absent(client, n), "all is gone")  # type: ignore[misc]
        story.kill()
        assert story.kills >= 30
        left = {o["metadata"]["name"] for o in await client.list(k.SECRETS, "clusters")}
        assert left == {"calm-pull-secret", "storm-pull-secret"}
        for resource in (k.CLUSTERROLES, k.CLUSTERROLEBINDINGS):
            assert not [o for o in await client.list(resource) if "storm" in o["metadata"]["name"]]


async def made_of(client: Client, name: str) -> set[tuple[str, str]]:
    """Its objects, by kind and by what their names would be in any cluster."""
    infra = await infra_id(client, name)
    found = await s.objects(client, f"clusters-{name}")
    return {(kind, one.replace(infra, "INFRA").replace(name, "NAME")) for kind, one in found}


async def infra_id(client: Client, name: str) -> str:
    live = await client.get(k.HOSTEDCLUSTERS, name, "clusters")
    return str(live["spec"]["infraID"])


async def test_the_management_api_server_may_stop_and_come_back(
    server: ApiServer, registry: Registry, tmp_path: Path
) -> None:
    async with Client(load_config(server.kubeconfig)) as client:
        await s.prepare(client)
        image = await s.push_release(registry, tmp_path, "1.36.3")
        story = Story(server, client)
        story.begin()
        await s.create(client, "patient", image, registry)

        async def begun() -> bool:
            return await client.get_or_none(k.NAMESPACES, "clusters-patient") is not None

        await eventually(begun, "it begins")
        server.stop_api(kill=True)
        await asyncio.sleep(1)
        server.start_api()
        await eventually(lambda: story.restarted("clusters-patient"), "it goes on by itself")
        story.kill()
