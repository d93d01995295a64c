"""A management cluster without nodes, one per file, and the operator inside the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from tests.support import management as s
from tests.support.api_server import ApiServer, free_port
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, hands, in_process, says
from tests.support.hosted_pods import HostedPods
from tests.support.registry import Registry
from tests.support.running_cluster import NAME, NS

from hcp.kube import Client, load_config
from hcp.kube import resources as k


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, bin_dir: Path) -> Iterator[ApiServer]:
    with s.management_server(tmp_path_factory.mktemp("management"), bin_dir) as made:
        yield made


@pytest.fixture
async def admin(server: ApiServer) -> AsyncIterator[Client]:
    async with Client(load_config(server.kubeconfig)) as client:
        await s.prepare(client)
        yield client


@pytest.fixture
async def operator(
    server: ApiServer, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[[], Running]]:
    async with in_process(server, monkeypatch) as begin:
        yield begin


@pytest.fixture
async def pods(
    admin: Client,
    operator: Callable[[], Running],
    image: str,
    registry: Registry,
    tmp_path: Path,
    bin_dir: Path,
) -> AsyncIterator[HostedPods]:
    port = free_port()
    made = HostedPods(tmp_path, bin_dir, admin, NS, port)
    operator()
    await eventually(lambda: gone(admin, NAME), "the cluster of the test before is gone")
    networking = {"networkType": "Other", "serviceNetwork": [{"cidr": "172.31.0.0/16"}], "apiServer": {"port": port}}
    await s.create(admin, NAME, image, registry, networking=networking)
    await made.begin()
    try:
        await eventually(lambda: says(admin, NAME, "Available", "True"), "Available", hands(admin, NS))
        yield made
    finally:
        await made.end()
        await admin.delete(k.HOSTEDCLUSTERS, NAME, "clusters")
