"""The short run of `make chaos`: twenty faults, and the audit after them. docs/chaos.md says what that is."""

from __future__ import annotations

import time

import pytest
from tests.chaos.run import chaos
from tests.support.e2e.local_tools import hcp

NAME = "e2e-chaos"
FAULTS = 20

pytestmark = pytest.mark.timeout(5400)


async def test_after_twenty_faults_all_is_as_it_should_be() -> None:
    seed = int(time.time()) % 1_000_000
    try:
        problems = await chaos(NAME, seed, FAULTS)
    finally:
        hcp("local", "down", "--name", NAME, "--purge", check=False)
    assert problems == [], f"SEED={seed} FAULTS={FAULTS} make chaos does the same again"
