"""A management cluster is lost while machines run on another one: a restore elsewhere takes them over as they are.

Three embedded clusters: two that manage, one after the other, and one where the machines are. A tenant's workload is
asked all the time. Whether a machine was started again is known from the infra cluster and from its own kernel.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.e2e.connections import steadily
from tests.support.e2e.control_planes import NS, available
from tests.support.e2e.hosted_tools import Guest
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.e2e.outliving import CLUSTER, HOST, Name, Web, api_address, create, infra_kubeconfig, machines
from tests.support.eventually import eventually_sync

ONE, TWO, INFRA = "outlive-one", "outlive-two", "outlive-infra"
pytestmark = pytest.mark.timeout(7200)


def up(name: str, folder: Path, profile: str) -> Cluster:
    hcp("local", "up", "--name", name, "--profile", profile)
    found = Cluster(name, folder)
    hcp("local", "push", "--name", name, "image-hcp", "release-1.36")
    if profile == "cluster":
        hcp("install", "--kubeconfig", str(found.kubeconfig), "--wait-until-available")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("outliving")
    (found / "passphrase").write_text("a passphrase for tests\n")
    return found


@pytest.fixture(scope="module")
def infra(folder: Path) -> Iterator[Cluster]:
    try:
        yield up(INFRA, folder, "kubevirt")
    finally:
        for name in (TWO, ONE, INFRA):
            hcp("local", "down", "--name", name, "--purge", check=False)


def guest_of(management: Cluster, folder: Path, address: str) -> Guest:
    """By the address behind the name: kubectl has no resolver that knows it."""
    path = folder / f"{management.name}-guest.kubeconfig"
    config = yaml.safe_load(
        hcp("create", "kubeconfig", "--name", CLUSTER, "--kubeconfig", str(management.kubeconfig)).stdout
    )
    cluster = config["clusters"][0]["cluster"]
    cluster |= {"server": cluster["server"].replace(HOST, address), "tls-server-name": HOST}
    path.write_text(yaml.safe_dump(config))
    return Guest(management, path)


def boots(guest: Guest) -> dict[str, str]:
    return {one["metadata"]["name"]: one["status"]["nodeInfo"]["bootID"] for one in guest.get("nodes")["items"]}


async def test_machines_and_their_workload_outlive_the_management_cluster(infra: Cluster, folder: Path) -> None:
    first, name = up(ONE, folder, "cluster"), Name(infra, folder)
    create(first, infra_kubeconfig(infra, folder), folder, 1)
    name.lead_to(first)
    available(first, CLUSTER)
    guest = guest_of(first, folder, api_address(first))
    eventually_sync(lambda: len(guest.ready_nodes()) == 1, "the node is ready", 1200)
    guest.run_web("web", replicas=1)
    address = eventually_sync(lambda: guest.load_balancer("web"), "an address for the workload", 300)
    store = (str(folder / "store"), "--passphrase-file", str(folder / "passphrase"))
    hcp("backup", "create", CLUSTER, "--store", *store, "--kubeconfig", str(first.kubeconfig))
    second = up(TWO, folder, "cluster")
    restore = ("restore", CLUSTER, "--from", *store, "--kubeconfig", str(second.kubeconfig))

    # While the first one runs nobody takes its machines.
    process = name.begin(*restore)
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 1 and "still runs somewhere" in said, said
    assert not second.get("hostedclusters", "-A")["items"]

    before, booted = machines(infra), boots(guest)

    def lose_and_restore() -> Guest:
        hcp("local", "down", "--name", ONE, "--purge")
        process = name.begin(*restore)
        name.lead_to(second)
        said, _ = process.communicate(timeout=1500)
        assert process.returncode == 0, said
        again = guest_of(second, folder, api_address(second))
        eventually_sync(lambda: again.ready_nodes() == sorted(before), "the node reports to the new place", 600)
        pool = ("nodepool", CLUSTER, "-n", NS)
        eventually_sync(lambda: second.get(*pool)["status"].get("replicas") == 1, "the pool has its machine", 600)
        return again

    async with steadily(Web(address, 8080), 5) as answers:
        began = time.monotonic()
        again = await asyncio.to_thread(lose_and_restore)
    print(answers.table(began))
    assert machines(infra) == before, "a machine was changed, restarted or made"
    assert boots(again) == booted
    assert answers.share == 1, answers.table(began)

    # It is managed again: what tenants ask for happens on it.
    again.kubectl("create", "deployment", "after", f"--image={again.image()}", "--", "sleep", "inf")
    again.kubectl("rollout", "status", "deployment/after", "--timeout=300s", seconds=330)
    assert machines(infra) == before
