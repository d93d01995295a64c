"""Whether the control plane of a backup still runs somewhere is proven by its certificate."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hcp import pki
from hcp.backup import still_there
from hcp.backup.objects import Kept


def kept(port: int, authority: bytes) -> Kept:
    data = {"ca.crt": base64.b64encode(authority).decode()}
    key: dict[str, Any] = {"kind": "Secret", "metadata": {"name": still_there.AUTHORITY}, "data": data}
    return Kept({"metadata": {"name": "demo", "namespace": "clusters"}}, keys=[key], endpoint=("127.0.0.1", port))


@asynccontextmanager
async def server(authority: pki.KeyPair, folder: Path) -> AsyncIterator[int]:
    pair = pki.issue(authority, "kubernetes", ips=("127.0.0.1",), usage="server")
    (folder / "crt").write_bytes(pair.cert_pem)
    (folder / "key").write_bytes(pair.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "crt", folder / "key")
    made = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with made:
        yield made.sockets[0].getsockname()[1]


async def test_only_the_clusters_own_authority_proves_it(tmp_path: Path) -> None:
    ours, others = pki.new_ca("root-ca"), pki.new_ca("root-ca")
    async with server(ours, tmp_path) as port:
        assert await still_there.answers(kept(port, ours.cert_pem))
        assert not await still_there.answers(kept(port, others.cert_pem)), "somebody else has the address now"
    assert not await still_there.answers(kept(port, ours.cert_pem)), "nobody answers"
    for broken in (b"no certificate", b"\xff\xfe"):
        assert not await still_there.answers(kept(port, broken)), "nothing that could prove it"
    assert not await still_there.answers(Kept({}, endpoint=("127.0.0.1", port))), "nothing to know it by"
