"""A management cluster without nodes, one per file, and the operator inside the test: for conftest files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.hosted_operator import Running, in_process

from hcp.kube import Client, load_config


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
