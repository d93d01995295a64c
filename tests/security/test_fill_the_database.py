"""A tenant fills its etcd: noticed, said, and healed without a hand; on a real etcd with a real API before it."""

from __future__ import annotations

import base64
import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support import management as s
from tests.support.api_server import ApiServer, free_port
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, hands, in_process, says
from tests.support.hosted_pods import HostedPods
from tests.support.registry import Registry

from hcp.hostedcluster import etcd_maintenance
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube import resources as k
from hcp.kube.errors import ApiError
from hcp.operator import wiring

NAME = "full"
NS = f"clusters-{NAME}"
# The smallest quota there is: 16 MiB.
VOLUME = {"size": "32Mi"}
HALF_A_MEGABYTE = "x" * 500_000


def large(name: str, mark: int) -> dict[str, Any]:
    data = {"mark": str(mark), "filler": HALF_A_MEGABYTE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


@pytest.fixture
async def operator(
    management: ApiServer, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[[], Running]]:
    """The operator inside the test, because the test changes how often it looks."""
    async with in_process(management, monkeypatch) as begin:
        yield begin


@pytest.fixture
async def guest(
    admin: Client,
    operator: Callable[[], Running],
    image: str,
    registry: Registry,
    tmp_path: Path,
    bin_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Client]:
    """The API of a hosted cluster whose etcd holds little, with an operator that looks often."""
    port = free_port()
    pods = HostedPods(tmp_path, bin_dir, admin, NS, port)
    found = functools.partial(etcd_maintenance.EtcdMaintenance, where=lambda _p, _index: pods.etcd_url)
    monkeypatch.setattr(wiring, "EtcdMaintenance", found)
    monkeypatch.setattr(etcd_maintenance, "LOOK", 0.5)
    monkeypatch.setattr(etcd_maintenance, "LOOK_FULL", 0.5)
    operator()
    networking = {"networkType": "Other", "serviceNetwork": [{"cidr": "172.31.0.0/16"}], "apiServer": {"port": port}}
    storage = {"type": "PersistentVolume", "persistentVolume": VOLUME}
    etcd = {"managementType": "Managed", "managed": {"storage": storage}}
    await s.create(admin, NAME, image, registry, networking=networking, etcd=etcd)
    await pods.begin()
    try:
        await eventually(lambda: says(admin, NAME, "Available", "True"), "Available", hands(admin, NS))
        secret = await admin.get(k.SECRETS, f"{NAME}-admin-kubeconfig", "clusters")
        config = untrusted_kubeconfig.load(base64.b64decode(secret["data"]["kubeconfig"]))
        async with Client(config) as client:
            yield client
    finally:
        await pods.end()
        await admin.delete(k.HOSTEDCLUSTERS, NAME, "clusters")


async def told(client: Client, reason: str) -> bool:
    return any(e["reason"] == reason for e in await client.list(k.EVENTS, "clusters"))


async def deleted(guest: Client, name: str) -> bool:
    await guest.delete(k.CONFIGMAPS, name, "default", missing_ok=True)
    return True


async def test_a_full_etcd_is_noticed_said_and_healed(admin: Client, guest: Client) -> None:
    # History alone fills it: compaction is enough.
    async def exceeded() -> bool:
        """Many at a time, so that nobody heals it meanwhile; a busy server has other errors too."""
        try:
            for mark in range(60):
                await guest.apply(large("same", mark))
        except ApiError as error:
            return "database space exceeded" in str(error)
        return False

    await eventually(exceeded, "its etcd is full")
    await eventually(lambda: told(admin, "EtcdNoSpace"), "the alarm is told")
    await eventually(lambda: told(admin, "EtcdHealed"), "it is healed")

    async def writable() -> bool:
        try:
            await guest.apply(large("same", -1))
        except ApiError:
            return False
        return True

    await eventually(writable, "writes work again")
    await eventually(lambda: says(admin, NAME, "EtcdAvailable", "True"), "said")

    # Live data fills it: only its owner can help, and is told so. Nobody else's cluster is touched by it.
    made: list[str] = []

    async def write_on() -> None:
        """What compaction frees is filled again, as a tenant who wants to harm would."""
        with contextlib.suppress(ApiError):
            await guest.create(large(f"kept-{len(made)}", len(made)))
            made.append(f"kept-{len(made)}")

    async def asks_for_deletion() -> bool:
        found = await s.condition(admin, NAME, "EtcdAvailable")
        return found.get("reason") == "EtcdNoSpace" and "delete objects" in found["message"]

    await eventually(asks_for_deletion, "the owner is told", write_on)
    await eventually(lambda: says(admin, NAME, "Available", "False"), "not available either")
    for name in made:
        await eventually(partial(deleted, guest, name), f"{name} is deleted")
    await eventually(lambda: says(admin, NAME, "EtcdAvailable", "True"), "healed after the deletion")
    await eventually(writable, "writes work again")
    await eventually(lambda: says(admin, NAME, "Available", "True"), "available again")
