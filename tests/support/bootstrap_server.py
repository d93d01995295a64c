"""The bootstrap server for nodes as a process, and somebody who asks it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import aiohttp
from tests.support.api_server import free_port
from tests.support.eventually import eventually

from hcp import pki
from hcp.ignition.certs import serving_leaf, serving_secret
from hcp.ignition.pointer import authorization
from hcp.ignition.run import serve
from hcp.ignition.store import document_secret
from hcp.kube import Client


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


@contextlib.asynccontextmanager
async def running(client: Client, namespace: str) -> AsyncIterator[Server]:
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

    async def known() -> bool:
        return (await made.ask("t1"))[0] == 200

    try:
        await eventually(up)
        await eventually(known, "it knows its document")
        yield made
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
