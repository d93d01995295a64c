"""Pools that follow the load: their size is the autoscaler's, and no pass of ours takes it back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.eventually import eventually
from tests.support.node_pools import (
    Object,
    clean,
    condition,
    deployment_of,
    hosted_cluster,
    node_pool,
    pool_with,
    prepare,
    quiet,
    running_operator,
)
from tests.support.passes import a_pass

from hcp.api import names
from hcp.api.paths import at
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.client import MANAGER
from hcp.nodepool.scaling import owns_size

AUTOSCALER = "cluster-autoscaler"


@pytest.fixture
async def home(client: Client, namespace: str, api_server: Path) -> AsyncIterator[str]:
    """A namespace with a hosted cluster whose release has an autoscaler."""
    await prepare(client)
    await clean(client)
    await hosted_cluster(client, namespace, api_server)
    image = {"spec": {"release": {"image": "r.test/release:1.36.3-autoscaling"}}}
    await client.patch(r.HOSTEDCLUSTERS, "demo", namespace, image)
    yield namespace
    await clean(client, namespace)


def scaled(home: str, low: int, high: int) -> Object:
    made = node_pool(home, autoScaling={"min": low, "max": high})
    del made["spec"]["replicas"]
    return made


async def scale(client: Client, home: str, size: int) -> None:
    """What the autoscaler does."""
    body = {"spec": {"replicas": size}}
    await client.patch(r.MACHINEDEPLOYMENTS, "demo", f"{home}-demo", body, subresource="scale", manager=AUTOSCALER)


async def change(client: Client, home: str, **spec: Any) -> None:
    await client.patch(r.NODEPOOLS, "demo", home, {"spec": spec})


async def is_so(client: Client, home: str, size: int, low: int, high: int, label: str = "") -> Object:
    """The pool has this size and these bounds, and the MachineDeployment says what its nodes are labelled with."""

    async def ask() -> Object:
        live = await client.get(r.MACHINEDEPLOYMENTS, "demo", f"{home}-demo")
        told = live["metadata"]["annotations"]
        bounds = told[names.CAPI_SIZE_MIN], told[names.CAPI_SIZE_MAX]
        assert (live["spec"].get("replicas"), *bounds) == (size, str(low), str(high))
        assert label in told.get("capacity.cluster-autoscaler.kubernetes.io/labels", "")
        return live

    return await eventually(ask, f"{size} within {low} and {high}")


async def test_the_size_between_the_bounds_is_the_autoscalers(client: Client, home: str, api_server: Path) -> None:
    async with running_operator(api_server) as writes:
        await client.create(scaled(home, 0, 3))
        made = await is_so(client, home, 0, 0, 3)
        told = made["metadata"]["annotations"]
        assert told["capacity.cluster-autoscaler.kubernetes.io/cpu"] == "2"
        pool = await pool_with(client, home, "AutoscalingEnabled", "True")
        assert condition(pool, "AutoscalingEnabled")["message"] == "Maximum nodes: 3, Minimum nodes: 0"
        assert condition(pool, "AllFieldsHonoured")["status"] == "True"

        async def handed_over() -> bool:
            live = await client.get(r.MACHINEDEPLOYMENTS, "demo", f"{home}-demo")
            return not owns_size(live, MANAGER) and live["spec"]["replicas"] == 0

        # The object is written again, without its size, and keeps it all the same.
        await change(client, home, nodeLabels={"first": "yes"})
        await eventually(handed_over, "the size belongs to somebody else")
        await is_so(client, home, 0, 0, 3, "first=yes")
        await scale(client, home, 2)
        await change(client, home, nodeLabels={"second": "yes"})
        await is_so(client, home, 2, 0, 3, "second=yes")
        before = await quiet(writes)
        async with a_pass("nodepool"):
            await client.patch(r.NODEPOOLS, "demo", home, {"metadata": {"annotations": {"example.com/x": "y"}}})
        assert writes[before:] == [], "a pool that rests is not written"


async def test_bounds_that_move_past_the_size_take_it_along(client: Client, home: str, api_server: Path) -> None:
    async with running_operator(api_server):
        await client.create(scaled(home, 1, 5))
        await is_so(client, home, 1, 1, 5)
        await scale(client, home, 4)
        await change(client, home, autoScaling={"min": 1, "max": 2})
        await is_so(client, home, 2, 1, 2)
        at_most = await pool_with(client, home, "AutoscalingEnabled", "True")
        assert "its maximum" in condition(at_most, "AutoscalingEnabled")["message"]
        await change(client, home, autoScaling={"min": 3, "max": 6})
        await is_so(client, home, 3, 3, 6)


async def test_a_pool_changes_from_a_number_to_bounds_and_back(client: Client, home: str, api_server: Path) -> None:
    async with running_operator(api_server):
        await client.create(node_pool(home, replicas=2))
        await is_so(client, home, 2, 0, 0)
        await change(client, home, replicas=None, autoScaling={"min": 1, "max": 4})
        await is_so(client, home, 2, 1, 4)
        await scale(client, home, 4)
        await change(client, home, nodeLabels={"third": "yes"})
        await is_so(client, home, 4, 1, 4, "third=yes")
        await change(client, home, replicas=3, autoScaling=None)
        live = await is_so(client, home, 3, 0, 0)
        assert not [key for key in live["metadata"]["annotations"] if key.startswith("capacity.")]
        await pool_with(client, home, "AutoscalingEnabled", "False")
        await change(client, home, replicas=None, autoScaling={"min": 0, "max": 4})
        await is_so(client, home, 3, 0, 4)


async def test_new_machines_and_a_rest_leave_the_size_as_the_load_made_it(
    client: Client, home: str, api_server: Path
) -> None:
    async with running_operator(api_server):
        await client.create(scaled(home, 1, 5))
        first = at(await deployment_of(client, home), "spec.template.spec.infrastructureRef.name")
        await scale(client, home, 3)
        await change(client, home, platform={"kubevirt": {"compute": {"cores": 3}}})

        async def replaced() -> Object | None:
            live = await client.get(r.MACHINEDEPLOYMENTS, "demo", f"{home}-demo")
            return live if at(live, "spec.template.spec.infrastructureRef.name") != first else None

        rolling = await eventually(replaced, "machines are replaced by larger ones")
        assert rolling["spec"]["replicas"] == 3
        assert rolling["metadata"]["annotations"]["capacity.cluster-autoscaler.kubernetes.io/cpu"] == "3"
        await change(client, home, pausedUntil="true")
        await is_so(client, home, 3, 0, 0)
        await scale(client, home, 4)
        await change(client, home, pausedUntil=None)
        await is_so(client, home, 4, 1, 5)
