"""Audit events of a hosted API, sent to a webhook and kept by profile; a real API server sends them."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.support import management as s
from tests.support.api_server import free_port
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, hands, mentions, says
from tests.support.hosted_pods import HostedPods
from tests.support.registry import Registry

from hcp import pki
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube import resources as k

NAME = "audited"
NS = f"clusters-{NAME}"
Object = dict[str, Any]


class Listener:
    """Takes audit events from whoever shows the right certificate."""

    def __init__(self, directory: Path) -> None:
        self.events: list[Object] = []
        self.port = free_port()
        ca = pki.new_ca("listener-ca")
        own = pki.issue(ca, "listener", ips=("127.0.0.1",))
        caller = pki.issue(ca, "caller", usage="client")
        for name, content in (("l.crt", own.cert_pem), ("l.key", own.key_pem), ("l-ca.crt", ca.cert_pem)):
            (directory / name).write_bytes(content)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(directory / "l-ca.crt"))
        self._context.load_cert_chain(directory / "l.crt", directory / "l.key")
        self._context.verify_mode = ssl.CERT_REQUIRED
        self.kubeconfig = pki.kubeconfig(
            f"https://127.0.0.1:{self.port}/audit", ca.cert_pem, caller.cert_pem, caller.key_pem
        )
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application(client_max_size=64 * 1024**2)
        app.router.add_post("/audit", self._take)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._context).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        self.events += (await request.json())["items"]
        return web.json_response({})

    def of(self, resource: str, verb: str) -> list[Object]:
        return [e for e in self.events if e["verb"] == verb and e.get("objectRef", {}).get("resource") == resource]


@pytest.fixture
async def listener(tmp_path: Path) -> AsyncIterator[Listener]:
    made = Listener(tmp_path)
    await made.start()
    yield made
    await made.stop()


async def give(client: Client, config: Object) -> None:
    await client.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "audit-target", "namespace": "clusters"},
            "stringData": {"webhook-kubeconfig": json.dumps(config)},
        }
    )


async def test_events_reach_the_webhook_and_secrets_stay_out_of_them(
    admin: Client,
    operator: Callable[[], Running],
    image: str,
    registry: Registry,
    listener: Listener,
    tmp_path: Path,
    bin_dir: Path,
) -> None:
    operator()
    evil = json.loads(json.dumps(listener.kubeconfig))
    evil["users"][0]["user"] = {"exec": {"command": "/bin/sh", "apiVersion": "client.authentication.k8s.io/v1"}}
    await give(admin, evil)
    port = free_port()
    pods = HostedPods(tmp_path, bin_dir, admin, NS, port)
    networking = {"networkType": "Other", "serviceNetwork": [{"cidr": "172.31.0.0/16"}], "apiServer": {"port": port}}
    audit = {"profile": "WriteRequestBodies", "customRules": [{"group": "system:masters", "profile": "Default"}]}
    await s.create(
        admin,
        NAME,
        image,
        registry,
        networking=networking,
        auditWebhook={"name": "audit-target"},
        configuration={"apiServer": {"audit": audit}},
    )
    await pods.begin()
    try:
        # A program in a kubeconfig out of a Secret is refused by name, and no API starts without its webhook.
        refused = lambda: mentions(admin, NAME, "ReconciliationSucceeded", "exec")  # noqa: E731
        await eventually(refused, "refused", hands(admin, NS))
        assert await admin.get_or_none(k.DEPLOYMENTS, "kube-apiserver", NS) is None
        assert await admin.get_or_none(k.SECRETS, "kas-audit-webhook", NS) is None
        await give(admin, listener.kubeconfig)
        await eventually(lambda: says(admin, NAME, "Available", "True"), "Available", hands(admin, NS))
        assert not await mentions(admin, NAME, "AllFieldsHonoured", "auditWebhook")
        found = await admin.get(k.SECRETS, f"{NAME}-admin-kubeconfig", "clusters")
        async with Client(untrusted_kubeconfig.load(base64.b64decode(found["data"]["kubeconfig"]))) as guest:
            made = {"apiVersion": "v1", "metadata": {"name": "seen", "namespace": "default"}}
            await guest.create({**made, "kind": "Secret", "stringData": {"word": "tell-nobody"}})
            await guest.create({**made, "kind": "ServiceAccount"})

        def mine(resource: str) -> list[Object]:
            return [e for e in listener.of(resource, "create") if e["objectRef"].get("name") == "seen"]

        def others() -> list[Object]:
            return [
                e
                for e in listener.of("serviceaccounts", "create")
                if "system:masters" not in e["user"]["groups"] and "subresource" not in e["objectRef"]
            ]

        async def all_three() -> bool:
            return bool(mine("secrets") and mine("serviceaccounts") and others())

        await eventually(all_three, "the events arrive, in whatever order")
        levels = {e["level"] for e in mine("serviceaccounts")}
        assert levels == {"Metadata"}, "system:masters has a profile of its own"
        assert {e["level"] for e in others()} == {"RequestResponse"}
        assert {e["level"] for e in listener.of("secrets", "create")} == {"Metadata"}
        assert "tell-nobody" not in json.dumps(listener.events)
    finally:
        await pods.end()
        await admin.delete(k.HOSTEDCLUSTERS, NAME, "clusters")
