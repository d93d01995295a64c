"""A tenant fills its etcd: noticed, said, and healed without a hand; on a real etcd with a real API before it."""

from __future__ import annotations

import base64
import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.test_engine_registry import Registry
from tests.integration.test_hostedcluster import (  # noqa: F401 - fixtures
    Running,
    admin,
    hands,
    image,
    operator,
    registry,
    says,
    server,
)
from tests.support import management as s
from tests.support.api_server import free_port
from tests.support.hosted_pods import HostedPods

from hcp.hostedcluster import etcd_care
from hcp.kube import Client, found_config
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
async def guest(
    admin: Client,  # noqa: F811
    operator: Callable[[], Running],  # noqa: F811
    image: str,  # noqa: F811
    registry: Registry,  # noqa: F811
    tmp_path: Path,
    bin_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Client]:
    """The API of a hosted cluster whose etcd holds little, with an operator that looks often."""
    port = free_port()
    pods = HostedPods(tmp_path, bin_dir, admin, NS, port)
    found = functools.partial(etcd_care.EtcdCare, where=lambda _p, _index: pods.etcd_url)
    monkeypatch.setattr(wiring, "EtcdCare", found)
    monkeypatch.setattr(etcd_care, "LOOK", 0.5)
    monkeypatch.setattr(etcd_care, "LOOK_FULL", 0.5)
    operator()
    networking = {"networkType": "Other", "serviceNetwork": [{"cidr": "172.31.0.0/16"}], "apiServer": {"port": port}}
    storage = {"type": "PersistentVolume", "persistentVolume": VOLUME}
    etcd = {"managementType": "Managed", "managed": {"storage": storage}}
    await s.create(admin, NAME, image, registry, networking=networking, etcd=etcd)
    await pods.begin()
    try:
        await s.eventually("Available", lambda: says(admin, NAME, "Available", "True"), hands(admin, NS))
        secret = await admin.get(k.SECRETS, f"{NAME}-admin-kubeconfig", "clusters")
        config = found_config.load(base64.b64decode(secret["data"]["kubeconfig"]))
        async with Client(config) as client:
            yield client
    finally:
        await pods.end()
        await admin.delete(k.HOSTEDCLUSTERS, NAME, "clusters")


async def told(client: Client, reason: str) -> bool:
    return any(e["reason"] == reason for e in await client.list(k.EVENTS, "clusters"))


async def test_a_full_etcd_is_noticed_said_and_healed(admin: Client, guest: Client) -> None:  # noqa: F811
    # History alone fills it: compaction is enough.
    with pytest.raises(ApiError, match="database space exceeded"):
        for mark in range(200):
            await guest.apply(large("same", mark))
    await s.eventually("the alarm is told", lambda: told(admin, "EtcdNoSpace"))
    await s.eventually("it is healed", lambda: told(admin, "EtcdHealed"))

    async def writable() -> bool:
        try:
            await guest.apply(large("same", -1))
        except ApiError:
            return False
        return True

    await s.eventually("writes work again", writable)
    await s.eventually("said", lambda: says(admin, NAME, "EtcdAvailable", "True"))

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

    await s.eventually("the owner is told", asks_for_deletion, write_on)
    await s.eventually("not available either", lambda: says(admin, NAME, "Available", "False"))
    for name in made:
        await guest.delete(k.CONFIGMAPS, name, "default")
    await s.eventually("healed after the deletion", lambda: says(admin, NAME, "EtcdAvailable", "True"))
    await s.eventually("writes work again", writable)
    await s.eventually("available again", lambda: says(admin, NAME, "Available", "True"))
