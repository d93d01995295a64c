"""The operator works with exactly the rights that `hcp install` gives its ServiceAccount."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import yaml
from tests.support import crds as support
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.rights import operators_count

from hcp.kube import Client, load_config
from hcp.kube import resources as r

HCP = Path(sys.executable).parent / "hcp"
FORBIDDEN = "Not allowed to"


def as_operator(server: ApiServer, directory: Path) -> Path:
    """A kubeconfig that acts as the operator's ServiceAccount."""
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] |= {
        "as": "system:serviceaccount:hypershift:operator",
        "as-groups": ["system:serviceaccounts", "system:authenticated"],
    }
    path = directory / "operator.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


@contextlib.asynccontextmanager
async def installed(server: ApiServer, directory: Path) -> AsyncIterator[Path]:
    """An operator that runs with the rights of its ServiceAccount; gives its log."""
    subprocess.run(
        [HCP, "install", "--image=x.example.com/hcp:1", "--development", f"--kubeconfig={server.kubeconfig}"],
        check=True,
        capture_output=True,
    )
    kubeconfig, log = as_operator(server, directory), directory / "operator.log"
    await operators_count(kubeconfig)
    with log.open("wb") as out:
        operator = subprocess.Popen(
            [HCP, "operator", "run", f"--kubeconfig={kubeconfig}", "--metrics-port=-1"],
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
        )
    try:
        yield log
        assert operator.poll() is None, log.read_text()
    finally:
        operator.terminate()
        operator.wait(120)


async def create_cluster(client: Client) -> None:
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters"}})
    cluster = support.rendered_cluster("clusters")
    cluster["spec"]["release"]["image"] = "127.0.0.1:1/none:1"
    await client.create(cluster)


async def until(client: Client, kind: str, status: str, log: Path, words: str = "") -> str:
    """The message of a condition, once it has the status and these words."""
    give_up = time.monotonic() + 300
    while time.monotonic() < give_up:
        found = await client.get(r.HOSTEDCLUSTERS, "demo", "clusters")
        for one in (found.get("status") or {}).get("conditions") or []:
            if one["type"] == kind and one["status"] == status and words in one["message"].lower():
                return str(one["message"])
        await asyncio.sleep(0.2)
    raise AssertionError(log.read_text())


async def test_a_first_pass_needs_no_further_rights(own_server: ApiServer, tmp_path: Path) -> None:
    async with installed(own_server, tmp_path) as log, Client(load_config(own_server.kubeconfig)) as client:
        await create_cluster(client)
        await until(client, "ValidReleaseImage", "False", log)
        assert await client.get(r.NAMESPACES, "clusters-demo")
        assert await client.get(r.SERVICES, "kube-apiserver", "clusters-demo")
    assert FORBIDDEN not in log.read_text()


async def test_a_missing_right_is_told_and_heals(own_server: ApiServer, tmp_path: Path) -> None:
    async with installed(own_server, tmp_path) as log, Client(load_config(own_server.kubeconfig)) as client:
        role = await client.get(r.CLUSTERROLES, "hypershift-operator")
        less = [rule for rule in role["rules"] if "networkpolicies" not in rule["resources"]]
        reading = {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["list", "watch"]}
        await client.patch(r.CLUSTERROLES, "hypershift-operator", None, {"rules": [*less, reading]})
        async with Client(load_config(tmp_path / "operator.yaml")) as operator:
            await eventually(lambda: _lacks(operator), "the right is gone")
        await create_cluster(client)
        said = await until(client, "ReconciliationSucceeded", "False", log, "networkpolicies")
        assert FORBIDDEN in said
        # What does not need the right is made all the same.
        assert await client.get(r.SERVICES, "kube-apiserver", "clusters-demo")
        await client.patch(r.CLUSTERROLES, "hypershift-operator", None, {"rules": role["rules"]})
        await until(client, "ReconciliationSucceeded", "True", log)


async def _lacks(operator: Client) -> bool:
    return not await operator.allowed("create", r.NETWORKPOLICIES, "clusters-demo")
