"""Memory of connections."""

from __future__ import annotations

from asyncio import sslproto

import pytest

from hcp.kube import buffers


def test_connections_of_the_operator_have_small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sslproto.SSLProtocol, "max_size", 256 * 1024)
    buffers.small()
    assert sslproto.SSLProtocol.max_size == buffers.RECORD
