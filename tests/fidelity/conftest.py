"""The same real API server as the integration tests, and upstream's published files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.conftest import api_server, bin_dir, client, namespace, shared_server
from tests.support import upstream

__all__ = ["api_server", "bin_dir", "client", "namespace", "shared_server"]


@pytest.fixture(scope="session")
def source() -> Path:
    return upstream.fetch(upstream.cache())
