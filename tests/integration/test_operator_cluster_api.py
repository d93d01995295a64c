"""Cluster API's managers are kept true for as long as the operator leads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually

from hcp.api.names import CAPI_CORE, CAPI_PROVIDER
from hcp.kube import Client, load_config
from hcp.kube import resources as k
from hcp.operator.cluster_api import ClusterApi
from hcp.operator.support import Support
from hcp.runtime import EventRecorder
from hcp.runtime.context import Guests, Informers, OperatorContext
from hcp.runtime.controller import RESULTS

IMAGES = {"cluster-api": "r.test/core@sha256:1", "cluster-api-kubevirt": "r.test/provider@sha256:2"}


@pytest.fixture
async def writes(shared_server: ApiServer, namespace: str) -> AsyncIterator[list[str]]:
    """The controller at work in this namespace, and what it writes."""
    made: list[str] = []

    def observer(verb: str, target: str, _status: int, _seconds: float) -> None:
        if verb not in ("get", "list", "watch"):
            made.append(f"{verb} {target}")

    async with Client(load_config(shared_server.kubeconfig), observer=observer) as client:
        events = EventRecorder(client, "test")
        ctx = OperatorContext(client, Informers(client), Guests(client, inside=False), events, namespace=namespace)
        controller = ClusterApi(ctx, Support(images=IMAGES)).wire()
        await ctx.informers.start()
        running = asyncio.create_task(controller.run())
        try:
            yield made
        finally:
            controller.stop()
            await running
            await ctx.informers.stop()


async def test_what_somebody_changes_or_deletes_comes_back(client: Client, namespace: str, writes: list[str]) -> None:
    async def live(name: str) -> dict[str, Any] | None:
        return await client.get_or_none(k.DEPLOYMENTS, name, namespace)

    async def both() -> bool:
        return await live(CAPI_CORE) is not None and await live(CAPI_PROVIDER) is not None

    await eventually(both)
    await client.patch(k.DEPLOYMENTS, CAPI_CORE, namespace, {"spec": {"replicas": 0}})

    async def restored() -> bool:
        found = await live(CAPI_CORE)
        return found is not None and found["spec"]["replicas"] == 1

    await eventually(restored)
    await client.delete(k.DEPLOYMENTS, CAPI_PROVIDER, namespace)
    await eventually(both)
    once_each = ["create secrets", *["patch deployments.apps"] * 4]  # two made, one restored, one made again

    async def all_noted() -> bool:
        # A write is noted when its answer is read, which is after somebody else can see the object.
        return len(writes) >= len(once_each)

    await eventually(all_noted)
    passes = RESULTS.value(controller="cluster-api", result="success")
    await client.patch(k.DEPLOYMENTS, CAPI_CORE, namespace, {"metadata": {"annotations": {"seen": "yes"}}})

    async def looked() -> bool:
        return RESULTS.value(controller="cluster-api", result="success") > passes

    await eventually(looked)
    assert writes == once_each, "a pass that finds everything right writes nothing"
