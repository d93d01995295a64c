from __future__ import annotations

import json
from typing import Any

from tests.support.unit.controlplane import params

from hcp.controlplane import scheduler


def config(profile: str) -> dict[str, Any]:
    made = scheduler.config(params(scheduler_config={"profile": profile}))
    found: dict[str, Any] = json.loads(made["data"]["config.yaml"])
    return found


def test_the_usual_profile_is_that_of_the_scheduler_itself() -> None:
    assert config("LowNodeUtilization") == config("") and "profiles" not in config("")


def test_nodes_are_filled_one_after_the_other() -> None:
    text = json.dumps(config("HighNodeUtilization"))
    assert '"MostAllocated"' in text and "NodeResourcesBalancedAllocation" in text


def test_the_first_node_that_fits_is_taken() -> None:
    assert config("NoScoring")["profiles"][0]["plugins"]["score"] == {"disabled": [{"name": "*"}]}
