"""The tour can be started again at any moment: what an earlier run did is neither refused nor undone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.local.demo import run as demo
from hcp.local.demo import summary
from hcp.local.demo.plan import Step, Tour, background, control_plane, machines, steps
from hcp.local.demo.position import Position
from hcp.payload.estimates import to_make

TOUR = Tour("default", "demo", 2, Path("demo"))


def test_a_new_cluster_begins_without_kubevirt_and_gets_it_later() -> None:
    assert list(control_plane(TOUR)[0].command)[4:6] == ["--profile", "cluster"]
    assert list(machines(TOUR)[0].command)[4:6] == ["--profile", "kubevirt"]


def test_a_cluster_from_an_earlier_run_keeps_its_profile() -> None:
    assert "--profile" not in control_plane(replace(TOUR, exists=True))[0].command


def test_compilers_and_kubevirt_do_not_wait_for_each_other_where_official_builds_are_fetched() -> None:
    fetching = replace(TOUR, fetches=True)
    titles = [step.title for step in steps(fetching)]
    assert titles.index("KubeVirt and CDI on the management cluster") == 2
    assert sorted(titles) == sorted(step.title for step in steps(TOUR))
    machines_parts, unpublished = background(fetching)
    assert "image-virt-launcher" in machines_parts
    assert {"cluster-api", "cluster-api-kubevirt", "ignition"} <= set(unpublished[2:6])
    assert "kubernetes-1.36" not in unpublished  # it is fetched


def test_built_from_source_only_parts_of_machines_are_made_in_the_background() -> None:
    assert [command[:3] for command in background(TOUR)] == [["payload", "build", "manifest-kubevirt"]]
    assert background(replace(TOUR, nodes=0)) == []


def test_only_the_step_that_would_take_nodes_away_is_skipped_when_done() -> None:
    known = [step for step in (*control_plane(TOUR), *machines(TOUR)) if step.known]
    assert [step.title for step in known] == ["A hosted cluster"]
    assert list(known[0].known[:3]) == ["get", "nodepools", "demo"]


def test_a_step_done_before_is_said_and_not_run() -> None:
    said: list[str] = []
    step = Step("A hosted cluster", ["local", "no-such-command"], known=["local", "up", "--help"])
    demo._step(step, said.append, [], Position(4, [step] * 5))
    assert "There already" in said[0]


def test_a_step_not_done_before_is_run_and_its_failure_names_the_step() -> None:
    step = Step("A hosted cluster", ["local", "no-such-command"], known=["local", "no-such-command"])
    with pytest.raises(HcpError, match="Step 5, 'A hosted cluster'"):
        demo._step(step, lambda _: None, [], Position(4, [step] * 5))


def test_each_step_says_how_long_it_takes_and_how_much_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing is built here
    todo = steps(TOUR)
    first = Position(0, todo).heading(todo[0])
    assert first.startswith("1/10 A management cluster (about ")
    assert first.endswith(" min left in all)")
    # Parts that several steps need are built once.
    minutes = int(first.split()[-5])
    alone = sum(to_make(step.parts) + step.typical for step in todo) / 60
    assert 20 < minutes < alone
    last = Position(9, todo).heading(todo[9])
    assert last == "10/10 The nodes are ready (about 2 min)"


def test_it_ends_with_five_commands_and_the_console_of_a_machine() -> None:
    said = summary.report(replace(TOUR, folder=Path("/my demo")), [("A", 1.0)], "demo-abc")
    tries = said.partition("== Five commands to try\n")[2].partition("\n\n")[0].splitlines()
    assert len(tries) == 5
    assert "hcp vm console demo-abc --kubeconfig '/my demo/management.kubeconfig'" in tries[-1]
    assert "local down --purge" in said
    assert len(summary.tries(replace(TOUR, nodes=0), "")) == 5


def test_stopping_it_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_step", stop)
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        demo.run(replace(TOUR, name="mine", nodes=0, folder=tmp_path / "tour"), said.append)
    assert "Stopped in step 1 of 7, 'A management cluster'. What was done stays." in said[-1]
    assert "hcp demo --nodes 0 --name mine" in said[-1]
    assert "hcp local down --name mine --purge" in said[-1]
