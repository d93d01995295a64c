"""Whether a name leads to a cluster's own router, asked as anybody would ask."""

from __future__ import annotations

import asyncio
import contextlib
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


async def served(tmp_path: Path, ca: KeyPair, answer: bytes) -> asyncio.Server:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            assert f"Host: {HOST}".encode() in await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
        writer.close()

    leaf = issue(ca, "router", dns=(HOST,), usage="server")
    (tmp_path / "tls.crt").write_bytes(leaf.cert_pem)
    (tmp_path / "tls.key").write_bytes(leaf.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    return await asyncio.start_server(talk, "127.0.0.1", 0, ssl=context)


async def test_only_the_certificate_of_this_cluster_counts(tmp_path: Path) -> None:
    ca = new_ca("root-ca")
    server = await served(tmp_path, ca, b"HTTP/1.1 200 OK\r\n\r\nHealthcheck requested")
    port = server.sockets[0].getsockname()[1]
    try:
        assert await reaches(Question(HOST, ca.cert_pem), Anywhere(), port) == ""
        other = Question(HOST, new_ca("root-ca").cert_pem)
        assert "answer" in await reaches(other, Anywhere(), port)
    finally:
        server.close()
    assert "does not answer" in await reaches(Question(HOST, ca.cert_pem), Anywhere(), port)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.0 503 Service Unavailable\r\n\r\n", "with 503: it does not reach the pods"),
        (b"HTTP/1.1 <script> x\r\n\r\n", "with 0:"),
        (b"SSH-2.0\r\n", "not as one"),
        (b"", "not as one"),
    ],
)
async def test_the_router_has_to_reach_pods(tmp_path: Path, answer: bytes, said: str) -> None:
    ca = new_ca("root-ca")
    server = await served(tmp_path, ca, answer)
    try:
        found = await reaches(Question(HOST, ca.cert_pem), Anywhere(), server.sockets[0].getsockname()[1])
    finally:
        server.close()
    assert said in found


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
