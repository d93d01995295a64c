"""The bootstrap server as a process on a real API server: TLS, tokens, marks, renewal without a restart."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator

import aiohttp
import pytest
from tests.support.api_server import free_port
from tests.support.node_pools import eventually

from hcp import pki
from hcp.ignition.certs import serving_leaf, serving_secret
from hcp.ignition.pointer import authorization
from hcp.ignition.run import serve
from hcp.ignition.store import document_secret
from hcp.kube import Client
from hcp.kube import resources as r


class Server:
    """A running server and somebody who asks it."""

    def __init__(self, client: Client, namespace: str, ca: pki.KeyPair, port: int, metrics: int) -> None:
        self.client = client
        self.namespace = namespace
        self.ca = ca
        self.port = port
        self.metrics = metrics

    async def put(self, token: str, old: str = "", body: str = "{}", target: str = "aa") -> None:
        secret = document_secret(
            "clusters-demo",
            "clusters/demo",
            target,
            token=token,
            old_token=old,
            payload=body.encode(),
            namespace=self.namespace,
        )
        await self.client.apply(secret)

    async def ask(self, token: str | None, path: str = "/ignition", pool: str = "clusters/demo") -> tuple[int, str]:
        context = ssl.create_default_context(cadata=self.ca.cert_pem.decode())
        headers = {"NodePool": pool, "TargetConfigVersionHash": "aa"}
        if token is not None:
            headers["Authorization"] = authorization(token)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://localhost:{self.port}{path}", ssl=context, headers=headers) as answer,
        ):
            return answer.status, await answer.text()


@pytest.fixture
async def server(client: Client, namespace: str) -> AsyncIterator[Server]:
    ca = pki.new_ca("ignition-root-ca")
    made = Server(client, namespace, ca, free_port(), free_port())
    task = asyncio.create_task(
        serve(client, namespace=namespace, port=made.port, metrics_port=made.metrics, address="127.0.0.1")
    )
    # It waits for its certificate instead of failing.
    await asyncio.sleep(0.2)
    await client.apply(serving_secret(pki.issue_leaf(ca, serving_leaf([])), ca.cert_pem, namespace))
    await made.put("t1")

    async def up() -> bool:
        try:
            return (await made.ask("t1", "/healthz"))[0] == 200
        except aiohttp.ClientError:
            return False

    try:
        await eventually(up)
        yield made
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def serves(server: Server, token: str, status: int) -> None:
    async def ask() -> bool:
        return (await server.ask(token))[0] == status

    assert await eventually(ask)


async def test_a_node_gets_its_document_and_leaves_a_mark(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    await serves(server, "t1", 200)
    assert (await server.ask("t1"))[1] == "{}"

    async def marked() -> bool:
        secret = await server.client.get(r.SECRETS, "ignition-clusters-demo.demo-aa", server.namespace)
        return bool(secret["metadata"]["annotations"].get("hypershift.openshift.io/ignition-reached") == "True")

    assert await eventually(marked)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert {line["status"] for line in lines} == {200}
    assert all("t1" not in line["token"] and line["nodePool"] == "clusters/demo" for line in lines)
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{server.metrics}/metrics") as answer,
    ):
        assert 'ign_server_get_request{nodePool="clusters/demo"}' in await answer.text()


async def test_others_get_nothing(server: Server) -> None:
    await serves(server, "t1", 200)
    assert (await server.ask("unknown"))[0] == 511
    assert (await server.ask(None))[0] == 401
    assert (await server.ask("t1", pool="clusters/other"))[0] == 401
    assert (await server.ask("t1", path="/"))[0] == 404


async def test_tokens_rotate_and_end_while_it_runs(server: Server) -> None:
    await serves(server, "t1", 200)
    await server.put("t2", old="t1")
    await serves(server, "t2", 200)
    assert (await server.ask("t1"))[0] == 200
    await server.put("t3", old="t2")
    await serves(server, "t1", 511)
    expiry = {"hypershift.openshift.io/ignition-token-expiration-timestamp": "2026-01-01T00:00:00Z"}
    name = "ignition-clusters-demo.demo-aa"
    await server.client.patch(r.SECRETS, name, server.namespace, {"metadata": {"annotations": expiry}})
    await serves(server, "t3", 511)
    await server.client.delete(r.SECRETS, name, server.namespace)
    await serves(server, "t2", 511)


async def test_a_renewed_certificate_is_used_without_a_restart(server: Server) -> None:
    newer = pki.new_ca("another-root")
    await server.client.apply(serving_secret(pki.issue_leaf(newer, serving_leaf([])), newer.cert_pem, server.namespace))
    server.ca = newer

    async def trusted() -> bool:
        try:
            return (await server.ask("t1"))[0] == 200
        except aiohttp.ClientConnectorCertificateError:
            return False

    assert await eventually(trusted)
