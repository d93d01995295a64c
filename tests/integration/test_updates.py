"""Updates that a hosted cluster is offered: from the graph beside its release, or from an update service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.cli_runner import Runner
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, rests, says, told
from tests.support.registry import Registry
from tests.support.security.hostile_registry import hostile

from hcp import graph
from hcp.api import conditions as c
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.oci import RegistryClient
from hcp.oci.push import Pusher
from hcp.publish.graph import of_releases, published, push
from hcp.publish.target import Target

RETRIEVED = c.CLUSTER_VERSION_RETRIEVED_UPDATES


async def _publish(registry: Registry, folder: Path, *versions: str) -> dict[str, str]:
    """Releases of these versions, and the graph beside them as `release push` writes it."""
    images = {version: await s.push_release(registry, folder, version) for version in versions}
    folder.mkdir(exist_ok=True)
    async with (
        Pusher(f"https://{registry.host}", ca_pem=registry.ca_pem) as pusher,
        RegistryClient(ca_pem=registry.ca_pem) as client,
    ):
        await push(pusher, client, Target(registry.host, "hcp"), images, folder)
    return images


async def _set(client: Client, name: str, **spec: Any) -> None:
    await client.patch(k.HOSTEDCLUSTERS, name, "clusters", {"spec": spec})


async def _offered(client: Client, name: str) -> list[str]:
    live = await client.get(k.HOSTEDCLUSTERS, name, "clusters")
    return [one["version"] for one in live["status"]["version"]["availableUpdates"]]


async def _remove(client: Client, name: str) -> None:
    await client.delete(k.HOSTEDCLUSTERS, name, "clusters")
    await eventually(lambda: gone(client, name), "gone")


async def test_a_channel_is_followed_to_the_newest_release(
    admin: Client, operator: Callable[[], Running], registry: Registry, server: ApiServer, tmp_path: Path
) -> None:
    hcp = Runner(server.kubeconfig, tmp_path)
    images = await _publish(registry, tmp_path, "1.36.1", "1.36.2", "1.36.3")
    running = operator()
    await s.create(admin, "led", images["1.36.1"], registry)
    await eventually(lambda: says(admin, "led", c.VALID_RELEASE_IMAGE, "True"), "the release is read")
    assert await s.condition(admin, "led", RETRIEVED) == {}, "nothing is looked up without a channel"
    words = ("upgrade", "cluster", "led", "--namespace", "clusters", "--to")
    assert "follows no channel" in await asyncio.to_thread(hcp.fails, *words, "latest")

    await _set(admin, "led", channel="stable-1.36")
    await eventually(lambda: says(admin, "led", RETRIEVED, "True"), "the graph is read")
    live = await admin.get(k.HOSTEDCLUSTERS, "led", "clusters")
    offered = live["status"]["version"]["availableUpdates"]
    assert [(one["version"], one["image"]) for one in offered] == [
        ("1.36.3", images["1.36.3"]),
        ("1.36.2", images["1.36.2"]),
    ]
    assert live["status"]["version"]["desired"]["channels"] == ["candidate-1.36", "stable-1.36"]

    await eventually(lambda: rests(admin, "led"), "all is said")
    await running.stop()
    again = operator()
    await admin.delete(k.SERVICES, "kube-apiserver", "clusters-led")
    await eventually(lambda: admin.get_or_none(k.SERVICES, "kube-apiserver", "clusters-led"), "the next one repairs it")
    assert [one for one in again.writes if "hostedclusters" in one] == [], "a restart says nothing new"

    await asyncio.to_thread(hcp.ok, *words, "1.36.2")
    assert (await admin.get(k.HOSTEDCLUSTERS, "led", "clusters"))["spec"]["release"]["image"] == images["1.36.2"]
    await eventually(lambda: _is(_offered(admin, "led"), ["1.36.3"]), "what is offered to the new version")
    await asyncio.to_thread(hcp.ok, *words, "latest")
    assert (await admin.get(k.HOSTEDCLUSTERS, "led", "clusters"))["spec"]["release"]["image"] == images["1.36.3"]
    await _set(admin, "led", channel=None)
    await eventually(lambda: _is(s.condition(admin, "led", RETRIEVED), {}), "a channel that is left is forgotten")
    await _remove(admin, "led")


async def _is(answer: Any, wanted: Any) -> bool:
    return bool(await answer == wanted)


async def test_an_update_service_is_asked_for_the_channel(
    admin: Client, operator: Callable[[], Running], registry: Registry, tmp_path: Path
) -> None:
    images = await _publish(registry, tmp_path, "1.36.2", "1.36.3")
    operator()
    async with hostile(tmp_path, "localhost") as service:
        known = of_releases(images)
        risk = graph.Risk("Slow", "disks are slow", "", ({"type": "Always"},))
        risky = graph.Graph(known.nodes, frozenset(), (graph.ConditionalEdge("1.36.2", "1.36.3", (risk,)),))
        service.serve("/graph", graph.dump(risky), "application/json")
        await s.create(admin, "asked", images["1.36.2"], registry, channel="fast", updateService=f"{service.url}/graph")
        untrusted = lambda: told(admin, "asked", RETRIEVED, "False", "certificate")  # noqa: E731
        await eventually(untrusted, "a certificate that nobody trusts")
        bundle = {"data": {"ca-bundle.crt": (registry.ca_pem + service.ca_pem).decode()}}
        await admin.patch(k.CONFIGMAPS, "asked-trust", "clusters", bundle)
        await _set(admin, "asked", channel="other")
        await eventually(lambda: _reason(admin, "asked", c.VERSION_NOT_FOUND), "a channel that does not have it")
        await _set(admin, "asked", channel="stable-1.36")
        await eventually(lambda: says(admin, "asked", RETRIEVED, "True"), "read")
        live = await admin.get(k.HOSTEDCLUSTERS, "asked", "clusters")
        assert live["status"]["version"]["availableUpdates"] == []
        (update,) = live["status"]["version"]["conditionalUpdates"]
        assert update["release"]["version"] == "1.36.3" and update["risks"][0]["name"] == "Slow"
        assert update["conditions"][0]["type"] == "Recommended" and update["conditions"][0]["status"] == "False"
        service.serve("/graph", b"<html>", "text/html")
        await _set(admin, "asked", channel="candidate-1.36")
        await eventually(lambda: _reason(admin, "asked", c.RESPONSE_INVALID), "no graph")
    await _remove(admin, "asked")


async def _reason(client: Client, name: str, reason: str) -> bool:
    return (await s.condition(client, name, RETRIEVED)).get("reason") == reason


async def test_what_was_published_before_stays_in_the_graph(registry: Registry, tmp_path: Path) -> None:
    await _publish(registry, tmp_path / "one", "1.35.4")
    await _publish(registry, tmp_path / "two", "1.36.3")
    async with RegistryClient(ca_pem=registry.ca_pem) as client:
        known = await published(client, f"{registry.host}/hcp/graph:latest")
    assert known is not None
    assert "1.36.3" in [node.version for node in known.updates("1.35.4")]
