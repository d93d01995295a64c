"""The bootstrap server as a process on a real API server: TLS, tokens, marks, renewal without a restart."""

from __future__ import annotations

import json

import aiohttp
import pytest
from tests.support.bootstrap_server import Server
from tests.support.eventually import eventually

from hcp import pki
from hcp.ignition.certs import serving_leaf, serving_secret
from hcp.kube import resources as r


async def serves(server: Server, token: str, status: int) -> None:
    async def ask() -> bool:
        return (await server.ask(token))[0] == status

    assert await eventually(ask)


async def test_a_node_gets_its_document_and_leaves_a_mark(
    bootstrap_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    await serves(bootstrap_server, "t1", 200)
    capsys.readouterr()  # before it knew of the document, it may have refused
    assert (await bootstrap_server.ask("t1"))[1] == "{}"

    async def marked() -> bool:
        secret = await bootstrap_server.client.get(
            r.SECRETS, "ignition-clusters-demo.demo-aa", bootstrap_server.namespace
        )
        return bool(secret["metadata"]["annotations"].get("hypershift.openshift.io/ignition-reached") == "True")

    assert await eventually(marked)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert {line["status"] for line in lines} == {200}
    assert all("t1" not in line["token"] and line["nodePool"] == "clusters/demo" for line in lines)
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{bootstrap_server.metrics}/metrics") as answer,
    ):
        assert 'ign_server_get_request{nodePool="clusters/demo"}' in await answer.text()


async def test_others_get_nothing(bootstrap_server: Server) -> None:
    await serves(bootstrap_server, "t1", 200)
    assert (await bootstrap_server.ask("unknown"))[0] == 511
    assert (await bootstrap_server.ask(None))[0] == 401
    assert (await bootstrap_server.ask("t1", pool="clusters/other"))[0] == 401
    assert (await bootstrap_server.ask("t1", path="/"))[0] == 404


async def test_tokens_rotate_and_end_while_it_runs(bootstrap_server: Server) -> None:
    await serves(bootstrap_server, "t1", 200)
    await bootstrap_server.put("t2", old="t1")
    await serves(bootstrap_server, "t2", 200)
    assert (await bootstrap_server.ask("t1"))[0] == 200
    await bootstrap_server.put("t3", old="t2")
    await serves(bootstrap_server, "t1", 511)
    expiry = {"hypershift.openshift.io/ignition-token-expiration-timestamp": "2026-01-01T00:00:00Z"}
    name = "ignition-clusters-demo.demo-aa"
    await bootstrap_server.client.patch(
        r.SECRETS, name, bootstrap_server.namespace, {"metadata": {"annotations": expiry}}
    )
    await serves(bootstrap_server, "t3", 511)
    await bootstrap_server.client.delete(r.SECRETS, name, bootstrap_server.namespace)
    await serves(bootstrap_server, "t2", 511)


async def test_a_renewed_certificate_is_used_without_a_restart(bootstrap_server: Server) -> None:
    newer = pki.new_ca("another-root")
    await bootstrap_server.client.apply(
        serving_secret(pki.issue_leaf(newer, serving_leaf([])), newer.cert_pem, bootstrap_server.namespace)
    )
    bootstrap_server.ca = newer

    async def trusted() -> bool:
        try:
            return (await bootstrap_server.ask("t1"))[0] == 200
        except aiohttp.ClientConnectorCertificateError:
            return False

    assert await eventually(trusted)
