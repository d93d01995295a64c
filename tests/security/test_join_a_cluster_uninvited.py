"""Whoever read a node document once has the credential that every machine joins with, and tries to become a node.

Of machines that are the user's own (platform None) nobody has a list but the one in the node pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support import node_pools as support
from tests.support.api_server import ApiServer
from tests.support.certificates import ask_for_certificate, send_request
from tests.support.eventually import eventually
from tests.support.node_pools import pool_with, running_operator
from tests.support.own_machines import NONE, join, own_pool

from hcp.api.names import ANNOTATION_EXPECTED_NODES
from hcp.kube import Client
from hcp.kube import resources as r


@pytest.fixture
async def home(client: Client, namespace: str, api_server: Path) -> AsyncIterator[str]:
    """A cluster of platform None that expects `own-1`, which is a node, and `own-9`, which is not yet."""
    await support.prepare(client)
    await support.clean(client)
    await support.hosted_cluster(client, namespace, api_server, platform=NONE)
    pool = own_pool(namespace)
    pool["metadata"]["annotations"] = {ANNOTATION_EXPECTED_NODES: "own-1,own-9"}
    await client.create(pool)
    await join(client, "own-1", address="192.0.2.7")
    await join(client, "own-2", address="192.0.2.8")
    async with running_operator(api_server):
        await pool_with(client, namespace, "Ready", "True")
        yield namespace
    for name in ("own-1", "own-2"):
        await client.delete(r.NODES, name, missing_ok=True)
    await support.clean(client, namespace)


async def stays_open(client: Client, home: str, request: str) -> bool:
    """The operator has told that a person must look, and has not answered."""

    async def told() -> bool:
        events = await client.list(r.EVENTS, home)
        return any(e["reason"] == "NodeCertificateWaits" and e["message"].startswith(f"{request}: ") for e in events)

    assert await eventually(told)
    return not ((await client.get(r.CSRS, request)).get("status") or {}).get("conditions")


async def test_a_name_that_nobody_expects_waits_for_a_person(
    client: Client, home: str, shared_server: ApiServer
) -> None:
    await send_request(shared_server, client, f"stranger-{home}", "stranger")
    assert await stays_open(client, home, f"stranger-{home}")


async def test_the_name_of_a_node_is_not_given_to_another_machine(
    client: Client, home: str, shared_server: ApiServer
) -> None:
    await send_request(shared_server, client, f"twin-{home}", "own-1")
    assert await stays_open(client, home, f"twin-{home}")


async def test_a_node_cannot_become_another_or_serve_for_it(
    client: Client, home: str, shared_server: ApiServer
) -> None:
    me = "system:node:own-2"

    async def verdict(name: str) -> str:
        async def answered() -> str:
            return str((await client.get(r.CSRS, name))["status"]["conditions"][0]["type"])

        return await eventually(answered)

    await send_request(shared_server, client, f"other-{home}", "own-1", user=me)
    await send_request(shared_server, client, f"theirs-{home}", "own-2", "192.0.2.7", user=me)
    await send_request(shared_server, client, f"mine-{home}", "own-2", "192.0.2.8", user=me)
    found = await asyncio.gather(*(verdict(f"{name}-{home}") for name in ("other", "theirs", "mine")))
    assert found == ["Denied", "Denied", "Approved"]


async def test_an_address_that_two_nodes_claim_is_certified_to_neither(
    client: Client, home: str, shared_server: ApiServer
) -> None:
    addresses = [{"type": "InternalIP", "address": "192.0.2.7"}, {"type": "InternalIP", "address": "192.0.2.8"}]
    await client.patch(r.NODES, "own-2", None, {"status": {"addresses": addresses}}, subresource="status")
    await send_request(shared_server, client, f"both-{home}", "own-2", "192.0.2.7", user="system:node:own-2")

    async def denied() -> bool:
        [answer] = (await client.get(r.CSRS, f"both-{home}"))["status"]["conditions"]
        return bool(answer["type"] == "Denied")

    assert await eventually(denied)


async def test_a_list_in_a_pool_of_virtual_machines_lets_nobody_in(
    client: Client, namespace: str, api_server: Path, shared_server: ApiServer
) -> None:
    await support.prepare(client)
    await support.clean(client)
    await support.hosted_cluster(client, namespace, api_server)
    pool = support.node_pool(namespace)
    pool["metadata"]["annotations"] = {ANNOTATION_EXPECTED_NODES: "stranger"}
    await client.create(pool)
    async with running_operator(api_server):
        assert await ask_for_certificate(shared_server, client, f"vm-{namespace}", "stranger") == "Denied"
    await support.clean(client, namespace)
