"""Whether a name leads to a cluster's own router, asked as anybody would ask."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from hcp.hostedcluster.canary import Canary, Question, reaches
from hcp.oci.address_policy import AddressPolicy
from hcp.pki import KeyPair, issue, new_ca

HOST = "localhost"


class Anywhere(AddressPolicy):
    """Also this machine."""

    def check(self, address: str) -> None:
        """No address is refused."""


async def served(tmp_path: Path, ca: KeyPair) -> asyncio.Server:
    leaf = issue(ca, "router", dns=(HOST,), usage="server")
    (tmp_path / "tls.crt").write_bytes(leaf.cert_pem)
    (tmp_path / "tls.key").write_bytes(leaf.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    return await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)


async def test_only_the_certificate_of_this_cluster_counts(tmp_path: Path) -> None:
    ca = new_ca("root-ca")
    server = await served(tmp_path, ca)
    port = server.sockets[0].getsockname()[1]
    try:
        assert await reaches(Question(HOST, ca.cert_pem), Anywhere(), port) == ""
        other = Question(HOST, new_ca("root-ca").cert_pem)
        assert "answer" in await reaches(other, Anywhere(), port)
    finally:
        server.close()
    assert "does not answer" in await reaches(Question(HOST, ca.cert_pem), Anywhere(), port)


async def test_names_that_lead_inside_are_not_asked() -> None:
    found = await reaches(Question(HOST, new_ca("root-ca").cert_pem), AddressPolicy(guarded=True))
    assert "is not asked" in found


async def test_what_is_known_is_told_once_it_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    canary = Canary(AddressPolicy(guarded=True), told.append)
    question = Question(HOST, new_ca("root-ca").cert_pem)
    cluster = {"metadata": {"name": "demo", "namespace": "clusters"}}
    assert canary.look(cluster, question)[0] is None
    while not told:
        await asyncio.sleep(0)
    assert "is not asked" in str(canary.look(cluster, question)[0])
    assert told == ["clusters/demo"]
    await canary.close()
