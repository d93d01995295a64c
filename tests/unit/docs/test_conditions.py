"""Every condition type and reason that the source can write has a place in the page about conditions."""

from __future__ import annotations

import re
from pathlib import Path

from tools.docs import inventory

PAGE = Path(__file__).parents[3] / "docs" / "troubleshooting" / "conditions.md"
TEXT = PAGE.read_text()
ADD = f"add it to {PAGE.relative_to(PAGE.parents[2])}: what it means, what to do"


def headings() -> set[str]:
    return set(re.findall(r"^### (\w+)$", TEXT, re.MULTILINE))


def test_every_type_has_a_heading() -> None:
    assert sorted(inventory.condition_types() - headings()) == [], ADD


def test_every_heading_is_a_type() -> None:
    assert sorted(headings() - inventory.condition_types()) == []


def test_every_reason_is_explained() -> None:
    named = set(re.findall(r"`(\w+)`", TEXT))
    assert sorted(inventory.reasons() - named) == [], ADD


def test_the_search_finds_what_is_written_in_every_way() -> None:
    """One of each way a reason is written in the source; a search that finds less would let pages go stale."""
    assert {"Available", "RolloutComplete"} <= inventory.condition_types()
    assert {"AsExpected", "ReconciliationPaused", "HostAlreadyClaimed", "LoadBalancerFailed"} <= inventory.reasons()
