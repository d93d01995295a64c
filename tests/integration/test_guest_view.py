"""One watched view of a guest: what status says of it follows by watch, and costs no listing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually

from hcp.api.names import LABEL_MANAGED_BY, MANAGED_BY
from hcp.guest import look
from hcp.guest.view import GuestView
from hcp.guest.views import Views
from hcp.kube import Client, load_config
from hcp.kube import resources as k

NAME = "part-of-a-view"


def node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def daemon_set() -> dict[str, Any]:
    labels = {"app": NAME}
    pod = {"containers": [{"name": "one", "image": "r.test/one"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": "kube-system", "labels": {LABEL_MANAGED_BY: MANAGED_BY}},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }


@pytest.fixture
async def asked(own_server: ApiServer) -> AsyncIterator[tuple[Client, list[str]]]:
    """A client, and the lists it asks for."""
    lists: list[str] = []

    def observer(verb: str, target: str, _status: int, _seconds: float) -> None:
        if verb == "list":
            lists.append(target)

    async with Client(load_config(own_server.kubeconfig), observer=observer) as client:
        yield client, lists


async def test_what_changes_in_a_guest_is_seen_without_listing_it_again(asked: tuple[Client, list[str]]) -> None:
    client, lists = asked
    views = Views()
    told: list[str] = []
    views.on_new(lambda hosted, view: view.on_change(lambda: told.append(hosted)))
    wanted = [daemon_set()]
    try:
        view = await views.get("clusters-demo", client)
        await view.nodes.wait_synced()
        assert look.look(view, wanted).nodes == 0
        assert lists == ["nodes"], "a guest without nodes costs one watch"
        await view.follow_parts()
        known = len(lists)
        await client.create(node("one"))
        await client.create(daemon_set())

        async def shows(nodes: int, ready: int, waiting: tuple[str, ...]) -> None:
            async def shown() -> bool:
                seen = look.look(view, wanted)
                return (seen.nodes, seen.ready_nodes, seen.waiting) == (nodes, ready, waiting)

            await eventually(shown)

        await shows(1, 0, ("a ready node",))
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await client.patch(k.NODES, "one", None, ready, subresource="status")
        await shows(1, 1, (f"DaemonSet {NAME}",))
        available = {"status": {"desiredNumberScheduled": 1, "numberAvailable": 1, "observedGeneration": 1}}
        await client.patch(k.DAEMONSETS, NAME, "kube-system", available, subresource="status")
        await shows(1, 1, ())
        assert "clusters-demo" in told
        assert len(lists) == known
    finally:
        await views.close()


async def test_another_client_begins_another_view_and_ends_the_first(own_server: ApiServer) -> None:
    views = Views()
    config = load_config(own_server.kubeconfig)
    async with Client(config) as one, Client(config) as two:
        first = await views.get("clusters-demo", one)
        assert await views.get("clusters-demo", one) is first
        second: GuestView = await views.get("clusters-demo", two)
        assert second is not first and views.known("clusters-demo") is second
        await views.close()
    assert views.known("clusters-demo") is None
