"""The tour can be started again at any moment: what an earlier run did is neither refused nor undone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.local.demo import run as demo
from hcp.local.demo.plan import Step, Tour, control_plane, machines

TOUR = Tour("default", "demo", 2, Path("demo"))


def test_a_new_cluster_begins_without_kubevirt_and_gets_it_later() -> None:
    assert list(control_plane(TOUR)[0].command)[4:6] == ["--profile", "cluster"]
    assert list(machines(TOUR)[0].command)[4:6] == ["--profile", "kubevirt"]


def test_a_cluster_from_an_earlier_run_keeps_its_profile() -> None:
    assert "--profile" not in control_plane(replace(TOUR, exists=True))[0].command


def test_only_the_step_that_would_take_nodes_away_is_skipped_when_done() -> None:
    known = [step for step in (*control_plane(TOUR), *machines(TOUR)) if step.known]
    assert [step.title for step in known] == ["A hosted cluster"]
    assert list(known[0].known[:3]) == ["get", "nodepools", "demo"]


def test_a_step_done_before_is_said_and_not_run() -> None:
    said: list[str] = []
    step = Step("A hosted cluster", ["local", "no-such-command"], known=["local", "up", "--help"])
    demo._step(step, said.append, [], 4)
    assert "There already" in said[0]


def test_a_step_not_done_before_is_run_and_its_failure_names_the_step() -> None:
    step = Step("A hosted cluster", ["local", "no-such-command"], known=["local", "no-such-command"])
    with pytest.raises(HcpError, match="Step 5, 'A hosted cluster'"):
        demo._step(step, lambda _: None, [], 4)
