"""A hosted cluster that sleeps wakes by the first request to its API, and by nothing that hcp does itself.

The control plane, the router and its HAProxy are real. The operator uses the published address, which leads through
that router: whatever it asked of the API would wake the cluster.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support import management as s
from tests.support.api_server import ApiServer, free_port
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, rests, says
from tests.support.hosted_pods import HostedPods
from tests.support.passes import a_pass
from tests.support.registry import Registry
from tests.support.router import World, own_address, running_world
from tests.support.running_cluster import NAME, NS, kubeconfig

from hcp.api import names
from hcp.api.paths import annotations_of
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.router import sleep_policy, sleepers

HCP = Path(sys.executable).parent / "hcp"
HOST = f"kube-apiserver-{NS}.apps.example.test"
ROUTED = [
    {"service": name, "servicePublishingStrategy": {"type": "Route"}}
    for name in ("APIServer", "Konnectivity", "Ignition", "OAuthServer")
]


@dataclass
class Place:
    """A hosted cluster published by the router."""

    admin: Client
    server: ApiServer
    world: World
    pods: HostedPods

    def hcp(
        self,
        *words: str,
        check: bool = True,
        kubeconfig: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> str:
        command = [str(HCP), *words, f"--kubeconfig={kubeconfig or self.server.kubeconfig}"]
        ended = subprocess.run(
            command, check=check, capture_output=True, text=True, timeout=300, env={**os.environ, **(env or {})}
        )
        return ended.stdout

    async def looks(self) -> list[str]:
        """What commands that look at the cluster print. A proxy tells whom else they connect to: nobody."""
        came: list[bytes] = []

        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            came.append(await reader.readline())
            writer.close()

        proxy = await asyncio.start_server(refuse, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        env = {"HTTPS_PROXY": address, "https_proxy": address, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        said = [
            await asyncio.to_thread(self.hcp, *words, check=words != ("doctor",), env=env)  # much has to be mended here
            for words in (("get", "clusters"), ("status", NAME), ("doctor",), ("get", "nodepools"))
        ]
        assert came == []
        # Whoever used the cluster's kubeconfig would have come by.
        guest = self.server.directory / "guest.kubeconfig"
        guest.write_bytes(await kubeconfig(self.admin))
        await asyncio.to_thread(self.hcp, "get", "clusters", check=False, kubeconfig=guest, env=env)
        assert HOST.encode() in came[0]
        proxy.close()
        return said

    async def annotations(self) -> Any:
        return annotations_of(await self.admin.get(k.HOSTEDCLUSTERS, NAME, "clusters"))

    async def marks(self) -> tuple[str | None, str | None]:
        found = annotations_of(await self.admin.get(k.ROUTES, "kube-apiserver", NS))
        return found.get(names.MARK_SLEEPS_SINCE), found.get(names.MARK_ASKED_FOR)

    async def stage(self, wanted: str) -> dict[str, Any]:
        async def there() -> dict[str, Any] | None:
            found = await s.condition(self.admin, NAME, "Hibernating")
            return found if found.get("reason") == wanted else None

        return await eventually(there, wanted)

    async def holds(self) -> str:
        """The mark, as soon as HAProxy knows that the cluster sleeps."""

        async def known() -> bool:
            return not await self.unheld()

        await eventually(known, "the router knows that it sleeps")
        return str((await self.marks())[0])

    async def unheld(self) -> bool:
        return f" {HOST} 1" not in await self.world.process.command("show map tls-asleep.map")

    async def request(self) -> str:
        """The first line of an answer of the hosted API, over one connection that checks who answers."""
        secret = await self.admin.get(k.SECRETS, "root-ca", NS)
        authority = base64.b64decode(secret["data"]["ca.crt"]).decode()
        context = ssl.create_default_context(cadata=authority)
        port = self.world.process.settings.https_port
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=HOST, ssl_handshake_timeout=300
        )
        writer.write(f"GET /readyz HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
        answer = (await reader.readline()).decode()
        writer.close()
        return answer


async def endpoints(admin: Client, pods: HostedPods, port: int) -> None:
    """What Kubernetes does for the Service: its pod is listed while it answers."""
    listed = False
    while True:
        with contextlib.suppress(Exception):
            if bool(pods._target) != listed:
                if not listed:
                    await admin.apply(
                        {
                            "apiVersion": "discovery.k8s.io/v1",
                            "kind": "EndpointSlice",
                            "metadata": {
                                "name": "kube-apiserver-1",
                                "namespace": NS,
                                "labels": {"kubernetes.io/service-name": "kube-apiserver"},
                            },
                            "addressType": "IPv4",
                            "ports": [{"name": "client", "port": port, "protocol": "TCP"}],
                            "endpoints": [{"addresses": [own_address()], "conditions": {"ready": True}}],
                        }
                    )
                else:
                    await admin.delete(k.ENDPOINTSLICES, "kube-apiserver-1", NS, missing_ok=True)
                listed = not listed
        await asyncio.sleep(0.1)


@pytest.fixture
async def place(
    admin: Client,
    server: ApiServer,
    operator: Callable[[], Running],
    image: str,
    registry: Registry,
    tmp_path: Path,
    bin_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Place]:
    for policy in sleep_policy.objects():
        await admin.apply(policy)
    async with running_world(admin, "clusters", tmp_path, wakes=True) as world:
        # The host leads to the router, as its name server would say.
        find = socket.getaddrinfo

        def found(host: Any, *more: Any, **options: Any) -> Any:
            return find("127.0.0.1" if host == HOST else host, *more, **options)

        monkeypatch.setattr(socket, "getaddrinfo", found)
        monkeypatch.setattr(names, "ROUTE_PORT", world.process.settings.https_port)
        pods = HostedPods(tmp_path, bin_dir, admin, NS, free_port())
        operator()
        await s.create(admin, NAME, image, registry, services=ROUTED)
        await pods.begin()
        front = await asyncio.start_server(pods._forward, "0.0.0.0", 0)
        listing = asyncio.create_task(endpoints(admin, pods, front.sockets[0].getsockname()[1]))
        try:
            await eventually(lambda: says(admin, NAME, "Available", "True"), "Available")
            yield Place(admin, server, world, pods)
        finally:
            listing.cancel()
            front.close()
            await pods.end()
            await admin.delete(k.HOSTEDCLUSTERS, NAME, "clusters", missing_ok=True)
            await eventually(lambda: gone(admin, NAME), "all is gone")


async def test_the_first_request_wakes_it_and_nothing_of_ours_does(
    place: Place, operator: Callable[[], Running]
) -> None:
    admin = place.admin
    assert "200" in await place.request()
    assert "the first request to its API wakes it" in place.hcp("hibernate", NAME, "--wake-on-request")
    said = await place.stage("Asleep")
    assert "It wakes with the first request to its API, or with: hcp wake" in said["message"]
    since = await place.holds()
    assert not place.pods.running
    assert await place.marks() == (since, None)

    # Nothing that hcp does by itself, or to look at it, connects to the API: nobody waits, nothing is written.
    await eventually(lambda: rests(admin, NAME), "nothing more is written")
    before = asked()
    clusters, status, *_ = await place.looks()
    assert "first request to its API" in clusters
    assert f"hosted cluster clusters/{NAME}: asleep" in status
    await Running.latest.stop()
    async with a_pass("hostedcluster", "machine-sleep", "vm-isolation"):
        again = operator()
    assert await rests(admin, NAME)
    assert again.writes == []
    assert (asked(), place.world.router.sleepers.held) == (before, 0)
    assert await place.marks() == (since, None)
    assert (await place.stage("Asleep"))["status"] == "True"

    # One request: it waits, the cluster wakes, and the API server that was started for it answers.
    first = asyncio.create_task(place.request())
    await place.stage("WakingUp")
    assert await place.marks() == (since, since)
    assert names.ANNOTATION_WOKEN in await place.annotations()
    assert "200" in await first
    said = await place.stage("Awake")
    assert await says(admin, NAME, "Available", "True")
    woken = [one for one in await admin.list(k.EVENTS, "clusters") if one.get("reason") == "WakingUp"]
    assert any("after a request to its API" in one["message"] for one in woken), woken

    async def unmarked() -> bool:
        return await place.marks() == (None, since)

    await eventually(unmarked, "the Route is as that of others")
    await eventually(lambda: rests(admin, NAME), "nothing more is written")

    # The next sleep is another one: what was asked before does not count.
    assert "the first request to its API wakes it" in place.hcp("hibernate", NAME)
    await place.stage("Asleep")
    assert names.ANNOTATION_WOKEN not in await place.annotations()
    later = await place.holds()
    assert later > since
    await eventually(lambda: rests(admin, NAME), "it sleeps on")
    assert await place.marks() == (later, since)
    # Whom its owner does not let wake it any more is refused at once.
    place.hcp("hibernate", NAME, "--wake-on-request=false")

    await eventually(unmarked, "the Route is as that of others")
    await eventually(place.unheld, "the router has heard of it")
    with pytest.raises((ssl.SSLError, OSError)):
        await place.request()
    await eventually(lambda: rests(admin, NAME), "it sleeps on")
    assert await place.marks() == (None, since)
    assert (await place.stage("Asleep"))["status"] == "True"


def asked() -> float:
    return sum(sleepers.ASKED.value(result=one) for one in ("awake", "late", "left", "refused"))


async def test_a_cluster_that_is_not_published_by_route_says_so(
    admin: Client, server: ApiServer, operator: Callable[[], Running], image: str, registry: Registry
) -> None:
    operator()
    await s.create(admin, "loadbalanced", image, registry)
    command = [str(HCP), "hibernate", "loadbalanced", "--wake-on-request", f"--kubeconfig={server.kubeconfig}"]
    refused = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert refused.returncode
    assert re.search(r"published by LoadBalancer: nobody would see requests", refused.stderr)
    by_hand = {"metadata": {"annotations": {names.ANNOTATION_WAKE_ON_REQUEST: "true"}}}
    await admin.patch(k.HOSTEDCLUSTERS, "loadbalanced", "clusters", by_hand)

    async def told() -> bool:
        said = (await s.condition(admin, "loadbalanced", "AllFieldsHonoured")).get("message", "")
        return "wake-on-request: the API is published by LoadBalancer" in said

    await eventually(told, "it is told")
    await admin.delete(k.HOSTEDCLUSTERS, "loadbalanced", "clusters")
    await eventually(lambda: gone(admin, "loadbalanced"), "all is gone")
