"""What every test is given: property tests without a deadline, and a real API server for those that ask for one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.support import management
from tests.support.ahead import Ahead
from tests.support.api_server import ApiServer, LocalServer, binaries
from tests.support.bootstrap_server import Server as BootstrapServer
from tests.support.bootstrap_server import running as running_bootstrap_server
from tests.support.registry import Registry, start

from hcp.kube import Client, load_config

# A busy machine is not a failure.
settings.register_profile("hcp", deadline=None)
settings.load_profile("hcp")


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


@pytest.fixture(scope="session")
def next_servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, bin_dir: Path
) -> Iterator[Ahead]:
    wanted = sum("own_server" in getattr(item, "fixturenames", ()) for item in request.session.items)
    servers = Ahead(lambda: ApiServer(tmp_path_factory.mktemp("own-server"), bin_dir), wanted)
    yield servers
    servers.close()


@pytest.fixture
def own_server(next_servers: Ahead) -> Iterator[ApiServer]:
    """A server for one test alone, which may stop and start it."""
    server = next_servers.take()
    try:
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


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    made, running = start(tmp_path_factory.mktemp("registry"), passwords=False)
    yield made
    running.kill()
    running.wait()


@pytest.fixture
async def image(registry: Registry, tmp_path: Path) -> str:
    return await management.push_release(registry, tmp_path, "1.36.3")


@pytest.fixture(scope="module")
def open_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    registry, process = start(tmp_path_factory.mktemp("open"), passwords=False)
    yield registry
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def closed_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    registry, process = start(tmp_path_factory.mktemp("closed"), passwords=True)
    yield registry
    process.kill()
    process.wait()


@pytest.fixture
async def bootstrap_server(client: Client, namespace: str) -> AsyncIterator[BootstrapServer]:
    """A bootstrap server with one document, token `t1`."""
    async with running_bootstrap_server(client, namespace) as made:
        yield made
