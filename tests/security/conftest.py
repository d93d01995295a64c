"""What every attack is given: a management cluster with a running operator, and an attacker with few rights in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.security.attacker import Attacker, enter

from hcp.kube import Client, load_config

_prepared: set[str] = set()


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory, bin_dir: Path) -> Iterator[ApiServer]:
    """A management cluster without nodes, one per file."""
    with s.management_server(tmp_path_factory.mktemp("management"), bin_dir) as made:
        yield made


@pytest.fixture
async def admin(management: ApiServer) -> AsyncIterator[Client]:
    """The administrator, with our kinds and those of our neighbours in place."""
    async with Client(load_config(management.kubeconfig)) as made:
        if management.url not in _prepared:
            await s.prepare(made)
            _prepared.add(management.url)
        yield made


@pytest.fixture
async def attacker(admin: Client, management: ApiServer) -> AsyncIterator[Attacker]:
    """Somebody with every right on HostedClusters, NodePools, Secrets and ConfigMaps of one namespace, and no other."""
    found = await enter(admin, management)
    yield found
    await found.client.close()


@pytest.fixture
def operator(management: ApiServer, admin: Client) -> Iterator[s.OperatorProcess]:
    """The operator as a process of its own; `management.log("operator")` is what it says."""
    running = s.OperatorProcess(management)
    yield running
    running.kill()
