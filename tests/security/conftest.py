"""What every attack is given: a management cluster with a running operator, and an attacker with few rights in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.security.attacker import Attacker, enter
from tests.support.security.fresh import Fresh

from hcp.kube import Client, load_config


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory, bin_dir: Path) -> Iterator[tuple[ApiServer, Fresh]]:
    with s.management_server(tmp_path_factory.mktemp("management"), bin_dir) as made:
        known = Fresh(made)
        known.prepare()
        yield made, known


@pytest.fixture(scope="module")
def management(fresh: tuple[ApiServer, Fresh]) -> Iterator[ApiServer]:
    """A management cluster without nodes, with our kinds and those of our neighbours; each file finds it empty."""
    yield fresh[0]
    _keeper.stop()
    fresh[1].again()


@pytest.fixture
async def admin(management: ApiServer) -> AsyncIterator[Client]:
    """The administrator."""
    async with Client(load_config(management.kubeconfig)) as made:
        yield made


@pytest.fixture
async def attacker(admin: Client, management: ApiServer) -> AsyncIterator[Attacker]:
    """Somebody with every right on HostedClusters, NodePools, Secrets and ConfigMaps of one namespace, and no other."""
    found = await enter(admin, management)
    yield found
    await found.client.close()


class Keeper:
    """One operator for all tests of a file that follow each other and want one: starting it takes longer than most."""

    def __init__(self) -> None:
        self._running: s.OperatorProcess | None = None

    def get(self, server: ApiServer) -> s.OperatorProcess:
        if self._running is None or self._running.ended:
            self.stop()
            self._running = s.OperatorProcess(server)
        return self._running

    def stop(self) -> None:
        if self._running is not None:
            self._running.kill()
        self._running = None


_keeper = Keeper()


@pytest.fixture(autouse=True)
def no_operator_unasked(request: pytest.FixtureRequest) -> None:
    """A test that wants none, or starts its own, is alone."""
    if "operator" not in request.fixturenames:
        _keeper.stop()


@pytest.fixture
def operator(management: ApiServer, admin: Client) -> s.OperatorProcess:
    """The operator as a process of its own; `management.log("operator")` is what it says."""
    return _keeper.get(management)
