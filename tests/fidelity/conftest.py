"""Upstream's published files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import upstream


@pytest.fixture(scope="session")
def source() -> Path:
    return upstream.fetch(upstream.cache())
