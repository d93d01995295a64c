"""A hosted cluster that people log in to: a real API server that believes a real dex; nothing else of it runs."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import management as s
from tests.support.api_server import ApiServer, free_port
from tests.support.cli_runner import Runner
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, hands, says
from tests.support.login import HostedLogin
from tests.support.registry import Registry

from hcp import payload
from hcp.controlplane import authentication, oauth
from hcp.controlplane.params import LOGIN_IMAGE
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube import resources as k
from hcp.payload.release import definitions

Object = dict[str, Any]
NAME, NS = "entry", "clusters-entry"
BROWSER = Path(__file__).with_name("browser.py")


class Place:
    """A hosted cluster whose API answers, and somebody who types."""

    def __init__(self, admin: Client, hosted: HostedLogin, guest: Client, runner: Runner) -> None:
        self.admin, self.hosted, self.guest, self.runner = admin, hosted, guest, runner

    async def serves(self) -> None:
        """The OAuth server runs, and the API server has read that it does."""

        async def deployed() -> Object | None:
            return await self.admin.get_or_none(k.DEPLOYMENTS, oauth.COMPONENT, NS)

        await eventually(deployed, "the OAuth server is wanted")
        await self.hosted.start_server()
        await s.report_ready(self.admin, NS)

        async def believed() -> bool:
            config = await self.admin.get(k.CONFIGMAPS, authentication.CONFIG, NS)
            return bool(json.loads(config["data"][authentication.FILE])["jwt"])

        await eventually(believed, "its tokens are to be believed")

    async def status(self) -> Object:
        found: Object = (await self.admin.get(k.HOSTEDCLUSTERS, NAME, "clusters")).get("status") or {}
        return found

    # The operator runs in this very loop, so nobody may hold it up.

    async def login(self, *words: str) -> None:
        await asyncio.to_thread(self.runner.ok, "login", "--name", NAME, *words)

    async def refused(self, *words: str) -> bool:
        return "refuses the login" in await asyncio.to_thread(self.runner.fails, "login", "--name", NAME, *words)

    def _turned_away(self) -> bool:
        waiting = self.runner.start("login", "--name", NAME, "--web", env={"BROWSER": "true"})
        try:
            assert waiting.stderr is not None
            url = next(line.strip() for line in waiting.stderr if line.startswith("https://"))
            command = [sys.executable, str(BROWSER), url]
            done = subprocess.run(
                command, env=self.runner.env, capture_output=True, text=True, check=False, timeout=120
            )
            return "turned away" in done.stderr and waiting.poll() is None
        finally:
            waiting.kill()
            waiting.communicate()

    async def turned_away(self) -> bool:
        """Whether a browser that fills in the form is not let in, and `hcp login` goes on waiting."""
        return await asyncio.to_thread(self._turned_away)

    def _kubectl(self, *words: str) -> str:
        env = {**self.runner.env, "KUBECONFIG": str(self.runner.folder / f"{NAME}.kubeconfig")}
        command = [str(self.hosted._bin_dir / "kubectl"), *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
        return done.stdout.strip()

    async def kubectl(self, *words: str) -> str:
        return await asyncio.to_thread(self._kubectl, *words)

    async def who(self) -> str:
        return await self.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")

    async def is_known_as(self, user: str) -> None:
        """The API server reads its file and the server's keys at its own pace."""

        async def known() -> bool:
            await self.hosted.refresh()
            return await self.who() == user

        await eventually(known, f"the token is that of {user}")


@pytest.fixture
async def begin(
    server: ApiServer,
    admin: Client,
    operator: Callable[[], Running],
    registry: Registry,
    tmp_path: Path,
    bin_dir: Path,
) -> AsyncIterator[Callable[..., Any]]:
    """Gives what makes the cluster, with fields of the test's."""
    hosted = HostedLogin(tmp_path, bin_dir, admin, NS)
    guests: list[Client] = []

    async def made(**spec: Any) -> Place:
        operator()
        folder = payload.ensure(["openshift-definitions"])["openshift-definitions"] / "manifests" / "crds"
        told = {"CONFIG_DEFINITIONS": definitions(folder)}
        image = await s.push_release(registry, tmp_path, "1.36.3", (*s.COMPONENTS, LOGIN_IMAGE), **told)
        port = free_port()
        services = [
            {"service": name, "servicePublishingStrategy": {"type": kind}}
            for name, kind in (("APIServer", "LoadBalancer"), ("Ignition", "Route"), ("Konnectivity", "Route"))
        ]
        node_port = {"type": "NodePort", "nodePort": {"address": "127.0.0.1"}}
        services.append({"service": "OAuthServer", "servicePublishingStrategy": node_port})
        networking = {
            "networkType": "Other",
            "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
            "apiServer": {"port": port},
        }
        await s.create(admin, NAME, image, registry, networking=networking, services=services, **spec)

        async def deployed() -> bool:
            return await admin.get_or_none(k.DEPLOYMENTS, "kube-apiserver", NS) is not None

        await eventually(deployed, "the API server is deployed", hands(admin, NS))
        await hosted.start(admin, NS, port)
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
            await s.report_ready(admin, NS, only=name)
        await eventually(lambda: says(admin, NAME, "ConfigOperatorReconciliationSucceeded", "True"), "the inside")
        secret = await admin.get(k.SECRETS, f"{NAME}-admin-kubeconfig", "clusters")
        guest = Client(untrusted_kubeconfig.load(base64.b64decode(secret["data"]["kubeconfig"])))
        guests.append(guest)
        return Place(admin, hosted, guest, Runner(server.kubeconfig, tmp_path))

    try:
        yield made
    finally:
        for one in guests:
            await one.close()
        hosted.stop()
        await admin.delete(k.HOSTEDCLUSTERS, NAME, "clusters", missing_ok=True)
        await eventually(lambda: gone(admin, NAME), "all is gone")


async def give(admin: Client, kind: str, name: str, data: dict[str, str]) -> None:
    """A Secret or ConfigMap beside the HostedCluster."""
    body = {"data": data} if kind == "ConfigMap" else {"stringData": data}
    meta = {"name": name, "namespace": "clusters"}
    await admin.apply({"apiVersion": "v1", "kind": kind, "metadata": meta, **body})
