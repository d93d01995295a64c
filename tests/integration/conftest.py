"""A management cluster without nodes, one per file, and the operator inside the test."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.support import management as s
from tests.support.api_server import free_port
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, hands, says
from tests.support.hosted_pods import HostedPods
from tests.support.operator_fixtures import admin, operator, server
from tests.support.registry import Registry
from tests.support.running_cluster import NAME, NS

from hcp import payload
from hcp.kube import Client
from hcp.kube import resources as k

__all__ = ["admin", "operator", "pods", "server"]


@pytest.fixture(scope="session", autouse=True)
def programs() -> None:
    """`ip`, `curl` and `mkfs.ext4` for a machine that has none, as the clean room; its own come first."""
    found = filter(None, map(payload.find, ("node-tools", "test-curl", "test-ext4")))
    os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *(str(path / "bin") for path in found)])


@pytest.fixture
def network_type() -> str:
    """Who brings the pod network; a file may have another answer."""
    return "Other"


@pytest.fixture
def networks() -> dict[str, list[dict[str, str]]]:
    """The ranges of the hosted cluster; a file may have others."""
    return {"serviceNetwork": [{"cidr": "172.31.0.0/16"}]}


@pytest.fixture
async def pods(
    admin: Client,
    network_type: str,
    networks: dict[str, list[dict[str, str]]],
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
    networking = {"networkType": network_type, **networks, "apiServer": {"port": port}}
    await s.create(admin, NAME, image, registry, networking=networking)
    await made.begin()
    try:
        await eventually(lambda: says(admin, NAME, "Available", "True"), "Available", hands(admin, NS))
        yield made
    finally:
        await made.end()
        await admin.delete(k.HOSTEDCLUSTERS, NAME, "clusters", missing_ok=True)
