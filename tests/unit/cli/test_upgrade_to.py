"""Which release `upgrade cluster --to` takes out of a status."""

from __future__ import annotations

from typing import Any

import pytest

from hcp.api import conditions as c
from hcp.cli.upgrade.updates import release
from hcp.errors import HcpError


def cluster(*offered: str, held: str = "", channel: str = "stable-1.36", told: str = "True") -> dict[str, Any]:
    risky = [{"release": {"version": held, "image": f"i:{held}"}, "risks": [{"name": "Slow", "message": "disks"}]}]
    conditions = [{"type": c.CLUSTER_VERSION_RETRIEVED_UPDATES, "status": told, "message": "the graph is gone"}]
    return {
        "metadata": {"name": "demo", "namespace": "clusters"},
        "spec": {"channel": channel},
        "status": {
            "conditions": conditions if told else [],
            "version": {
                "desired": {"version": "1.36.1", "image": "i:1.36.1"},
                "availableUpdates": [{"version": one, "image": f"i:{one}"} for one in offered],
                **({"conditionalUpdates": risky} if held else {}),
            },
        },
    }


def test_latest_is_the_newest_by_number() -> None:
    assert release(cluster("1.36.9", "1.36.10"), "latest", risky=False) == "i:1.36.10"
    assert release(cluster(), "latest", risky=False) == "i:1.36.1", "nothing newer: it stays"
    assert release(cluster("1.36.9", held="1.36.11"), "latest", risky=False) == "i:1.36.9"
    assert release(cluster("1.36.9", held="1.36.11"), "latest", risky=True) == "i:1.36.11"


def test_a_version_that_is_offered_is_taken() -> None:
    assert release(cluster("1.36.2", "1.36.3"), "1.36.2", risky=False) == "i:1.36.2"
    assert release(cluster(), "1.36.1", risky=False) == "i:1.36.1", "where it is already"


@pytest.mark.parametrize(
    ("given", "wanted", "said"),
    [
        (cluster("1.36.2"), "1.36.7", "offers no update of demo from 1.36.1 to 1.36.7: it offers: 1.36.2"),
        (cluster(held="1.36.3"), "1.36.3", "1.36.3 is not recommended for demo: Slow: disks"),
        (cluster(held="1.36.3"), "latest", "can only move to versions with known risks"),
        (cluster(channel=""), "latest", "follows no channel"),
        (cluster(told="False"), "latest", "are not known: the graph is gone"),
        (cluster(told=""), "latest", "were not looked up yet"),
        (cluster(), "newest", "is no version"),
    ],
)
def test_why_not_is_said(given: dict[str, Any], wanted: str, said: str) -> None:
    with pytest.raises(HcpError) as caught:
        release(given, wanted, risky=False)
    assert said in str(caught.value)
