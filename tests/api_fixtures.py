"""Fixtures of every test that needs a real API server: the server, and clients to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support.api_server import ApiServer, LocalServer, binaries

from hcp.kube import Client, load_config


@pytest.fixture(scope="session")
def bin_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return binaries(tmp_path_factory.mktemp("bin"))


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory, bin_dir: Path) -> Iterator[ApiServer]:
    """One server for all tests of the session that do not stop it."""
    server = ApiServer(tmp_path_factory.mktemp("api-server"), bin_dir)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def api_server(shared_server: ApiServer) -> Path:
    """The kubeconfig of the shared server, as its administrator."""
    return shared_server.kubeconfig


@pytest.fixture(scope="session")
def local_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """`hcp local up --profile api`, for the tests of the command line."""
    server = LocalServer(tmp_path_factory.mktemp("local"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def own_server(tmp_path: Path, bin_dir: Path) -> Iterator[ApiServer]:
    """A server for one test alone, which may stop and start it."""
    server = ApiServer(tmp_path, bin_dir)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
async def client(api_server: Path) -> AsyncIterator[Client]:
    async with Client(load_config(api_server)) as made:
        yield made


@pytest.fixture
async def namespace(client: Client) -> str:
    """A new namespace; it stays, no other test uses its name."""
    made = await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}})
    return str(made["metadata"]["name"])
