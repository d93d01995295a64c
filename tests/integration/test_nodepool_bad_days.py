"""Bad days of node pools on a real API server: a condition says it, the rest stays, and it heals."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.eventually import eventually
from tests.support.node_pools import (
    Object,
    clean,
    deployment_of,
    hosted_cluster,
    node_pool,
    pool_with,
    prepare,
    running_operator,
)

from hcp.api.names import INFRA_CREDENTIALS
from hcp.controlplane.hostedcontrolplane import hosted_control_plane
from hcp.hostedcluster.translate import params
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kubevirt.network_policy import NAME


@pytest.fixture
async def empty(client: Client, namespace: str) -> AsyncIterator[str]:
    """A namespace without a hosted cluster, on a server without pools of other tests."""
    await prepare(client)
    await clean(client)
    yield namespace
    await clean(client, namespace)


async def nudge(client: Client, namespace: str, value: str) -> None:
    await client.patch(r.NODEPOOLS, "demo", namespace, {"metadata": {"annotations": {"example.com/x": value}}})


async def test_an_infra_cluster_that_goes_away_is_said_and_heals(client: Client, empty: str, api_server: Path) -> None:
    hosted, right = f"{empty}-demo", api_server.read_text()
    away = re.sub(r"server: \S+", "server: https://127.0.0.1:1", right)
    reference = {"name": "infra", "key": "kubeconfig"}
    await hosted_cluster(
        client, empty, api_server, credentials={"infraKubeConfigSecret": reference, "infraNamespace": hosted}
    )

    async def use(kubeconfig: str) -> None:
        data = {"kubeconfig": base64.b64encode(kubeconfig.encode()).decode()}
        metadata = {"name": INFRA_CREDENTIALS, "namespace": hosted}
        await client.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})

    async with running_operator(api_server):
        await use(away)
        await client.create(node_pool(empty))
        await pool_with(client, empty, "ValidPlatformConfig", "False", words="infra cluster cannot be asked")
        await use(right)
        await pool_with(client, empty, "ValidPlatformConfig", "True")
        made = await deployment_of(client, empty)
        await use(away)
        await nudge(client, empty, "1")
        await pool_with(client, empty, "ValidPlatformConfig", "False")
        assert (await deployment_of(client, empty))["spec"] == made["spec"]
        await use(right)
        await pool_with(client, empty, "ValidPlatformConfig", "True")


async def test_pools_of_one_name_in_two_clusters_stay_apart(client: Client, empty: str, api_server: Path) -> None:
    other = f"{empty}-b"
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    for home in (empty, other):
        await hosted_cluster(client, home, api_server)
    try:
        async with running_operator(api_server):
            for home in (empty, other):
                await client.create(node_pool(home))
            tokens = []
            for home in (empty, other):
                machine = (await deployment_of(client, home))["spec"]["template"]["spec"]
                name = machine["bootstrap"]["dataSecretName"].replace("user-data-", "token-")
                tokens.append((await client.get(r.SECRETS, name, f"{home}-demo"))["data"]["token"])
                target = name.removeprefix("token-demo-")
                assert await client.get(r.SECRETS, f"ignition-{home}-demo.demo-{target}", "hypershift")
            assert tokens[0] != tokens[1]
            await client.patch(r.NODEPOOLS, "demo", other, {"spec": {"replicas": 5}})

            async def scaled() -> bool:
                return bool((await deployment_of(client, other))["spec"]["replicas"] == 5)

            assert await eventually(scaled)
            assert (await deployment_of(client, empty))["spec"]["replicas"] == 2
    finally:
        await clean(client, other)


async def test_a_boot_image_that_cannot_be_imported_is_said_and_heals(
    client: Client, empty: str, api_server: Path
) -> None:
    hosted = f"{empty}-demo"
    await hosted_cluster(client, empty, api_server)
    pool = node_pool(empty)
    pool["spec"]["platform"]["kubevirt"]["rootVolume"]["cacheStrategy"] = {"type": "PVC"}

    async def report(phase: str, *conditions: Object) -> None:
        [cache] = await eventually(lambda: client.list(r.DATAVOLUMES, hosted), "the cache")
        body = {"status": {"phase": phase, "conditions": list(conditions)}}
        await client.patch(r.DATAVOLUMES, cache["metadata"]["name"], hosted, body, subresource="status")
        await nudge(client, empty, phase)

    async with running_operator(api_server):
        await client.create(pool)
        await deployment_of(client, empty)
        refused = {"type": "Running", "status": "False", "reason": "ImagePullFailed", "message": "manifest unknown"}
        await report("ImportInProgress", refused)
        await pool_with(client, empty, "ValidPlatformImage", "False", words="manifest unknown")
        await report("Succeeded")
        await pool_with(client, empty, "ValidPlatformImage", "True")


async def test_machines_are_kept_in_once_there_is_a_namespace_and_again_when_the_policy_is_taken_away(
    client: Client, empty: str, api_server: Path
) -> None:
    made = await hosted_cluster(client, empty, api_server, plane=False)
    hosted = f"{empty}-demo"

    async def policy() -> Object:
        return await client.get(r.NETWORKPOLICIES, NAME, hosted)

    async with running_operator(api_server):
        await client.create(hosted_control_plane(params(made), made))
        first = await eventually(policy)
        await client.delete(r.NETWORKPOLICIES, NAME, hosted)
        again = await eventually(policy)
        assert again["spec"] == first["spec"]
        assert again["metadata"]["uid"] != first["metadata"]["uid"]
