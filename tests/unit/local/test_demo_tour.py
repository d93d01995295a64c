"""The tour can be started again at any moment: what an earlier run did is neither refused nor undone."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from hcp.cli.main import main
from hcp.errors import HcpError
from hcp.local.demo import run as demo
from hcp.local.demo import summary, volumes
from hcp.local.demo.beside import Beside
from hcp.local.demo.plan import Step, Tour, background, control_plane, machines, steps, urgent
from hcp.local.demo.position import Position
from hcp.payload.estimates import to_make

TOUR = Tour("default", "demo", 2, Path("demo"))


def test_a_new_cluster_begins_without_kubevirt_and_gets_it_later() -> None:
    assert list(control_plane(TOUR)[0].command)[4:6] == ["--profile", "cluster"]
    assert list(machines(TOUR)[0].command)[4:6] == ["--profile", "kubevirt"]


def test_a_cluster_from_an_earlier_run_keeps_its_profile() -> None:
    assert "--profile" not in control_plane(replace(TOUR, exists=True))[0].command


@pytest.mark.parametrize("exists", [False, True])
def test_the_command_tells_the_tour_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    asked: list[Tour] = []
    monkeypatch.setattr("hcp.local.demo.run.run", lambda tour, _: asked.append(tour))
    monkeypatch.setattr("hcp.local.state.spec.load", lambda _: SimpleNamespace(has_node=True) if exists else None)
    monkeypatch.setattr("hcp.cli.engine.terminal.end_like_an_interrupt", lambda: None)
    assert main("hcp", ["demo", "--folder", str(tmp_path)]) == 0
    assert asked == [Tour("default", "demo", 2, tmp_path, exists=exists)]


def test_fewer_nodes_than_none_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("hcp", ["demo", "--nodes", "-1"]) != 0
    assert "cannot be negative" in capsys.readouterr().err


def test_compilers_and_kubevirt_do_not_wait_for_each_other_where_official_builds_are_fetched() -> None:
    fetching = replace(TOUR, fetches=True)
    titles = [step.title for step in steps(fetching)]
    assert titles.index("DNS, volumes, Routes, KubeVirt and CDI on the management cluster") == 2
    assert len(titles) == len(steps(TOUR)) + 1
    machines_parts, unpublished = background(fetching)
    assert "image-virt-launcher" in machines_parts
    assert machines_parts[-2:] == ["--first", "kubernetes-1.36"]  # the first step waits for it, machines do not yet
    assert {"ignition", "mirror-proxy"} <= set(unpublished[2:6])
    assert unpublished.index("rootfs-python") < unpublished.index("rootfs-node")  # the router's image waits for it
    assert not {"kubernetes-1.36", "cluster-api", "cluster-api-kubevirt"} & set(unpublished)  # they are fetched


def test_where_official_builds_are_fetched_kubevirt_starts_while_the_control_plane_does() -> None:
    todo = steps(replace(TOUR, fetches=True))
    [beside] = [number for number, step in enumerate(todo) if step.beside]
    [joined] = [number for number, step in enumerate(todo) if step.needs_beside]
    between = [step.title for step in todo[beside + 1 : joined]]
    assert list(todo[0].command[-2:]) == ["--until", "node"]
    assert list(todo[beside].command[-2:]) == ["--profile", "kubevirt"]
    assert not todo[beside].needs_build, "it begins with what is there and fetches the rest itself"
    assert "The operator" in between
    assert "A hosted cluster" in between
    assert todo[joined].title.endswith("virtual machines as nodes")
    assert not [step for step in steps(TOUR) if step.beside or step.needs_beside]


def test_where_official_builds_are_fetched_the_operator_starts_before_its_release_is_whole() -> None:
    todo = {step.title: list(step.command) for step in steps(replace(TOUR, fetches=True))}
    titles = list(todo)
    first, install, release = "The operator's image in its registry", "The operator", "A release in its registry"
    assert titles.index(first) < titles.index(install) < titles.index(release) < titles.index("A hosted cluster")
    assert todo[first][4:] == ["image-hcp"]
    assert todo[release][4:] == ["release-1.36"]
    assert todo[install][-2:] == ["--default-release-image", volumes.image("release-1.36")]
    assert [command[2] for command in urgent(replace(TOUR, fetches=True))] == ["release-1.36"]
    assert urgent(TOUR) == []
    assert "--default-release-image" not in [word for step in steps(TOUR) for word in step.command]


def test_a_step_beside_others_is_waited_for_and_its_failure_names_it(tmp_path: Path) -> None:
    said: list[str] = []
    laps: list[tuple[str, float]] = []
    good, bad = Step("Good", ["local", "up", "--help"]), Step("Bad", ["local", "no-such-command"])
    with Beside(tmp_path, said.append, laps) as beside:
        beside.start(good, Position(0, [good, bad]))
        beside.wait()
        assert [title for title, _ in laps] == ["Good"]
        beside.start(bad, Position(1, [good, bad]))
        with pytest.raises(HcpError, match="Step 2, 'Bad'"):
            beside.wait()
    assert "goes on beside the next steps" in "\n".join(said)
    assert (tmp_path / "step-1.log").read_text().startswith("Makes a real Kubernetes cluster")


def test_a_step_beside_others_that_fails_ends_the_one_in_front(tmp_path: Path) -> None:
    bad = Step("Bad", ["local", "no-such-command"])
    with Beside(tmp_path, lambda _: None, []) as beside, subprocess.Popen(["sleep", "3600"]) as front:
        beside.start(bad, Position(2, [bad] * 4))
        try:
            with pytest.raises(HcpError, match="Step 3, 'Bad', ended with exit code") as raised:
                beside.watch(front)
        finally:
            front.kill()
    assert "no-such-command" in str(raised.value.cause or raised.value)


def test_a_step_beside_others_that_is_done_leaves_the_one_in_front_alone(tmp_path: Path) -> None:
    good = Step("Good", ["local", "up", "--help"])
    with Beside(tmp_path, lambda _: None, []) as beside:
        beside.start(good, Position(0, [good]))
        with subprocess.Popen(["sh", "-c", f"while ! test -s {tmp_path}/step-1.log; do :; done; exit 3"]) as front:
            assert beside.watch(front) == 3


def test_what_a_step_beside_others_says_lets_later_ones_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hcp.local.demo.beside.hcp", lambda words: ["sh", "-c", *words])
    said: list[str] = []
    step = Step("Long", ["echo begun; echo usable now; exec sleep 3600"], enough="usable now")
    with Beside(tmp_path, said.append, []) as beside:
        beside.start(step, Position(0, [step]))
        beside.enough()
        child = beside._running[0].child
        assert child.poll() is None, "it goes on"
    assert child.poll() is not None
    assert (tmp_path / "step-1.log").read_text() == "begun\nusable now\n"


def test_a_step_that_fails_before_it_was_enough_is_no_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hcp.local.demo.beside.hcp", lambda words: ["sh", "-c", *words])
    step = Step("Bad", ["echo the reason >&2; exit 4"], enough="usable now")
    with Beside(tmp_path, lambda _: None, []) as beside:
        beside.start(step, Position(0, [step]))
        with pytest.raises(HcpError, match="Step 1, 'Bad', ended with exit code 4") as raised:
            beside.enough()
    assert raised.value.cause == "the reason"


def test_what_a_step_left_running_does_not_hold_the_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hcp.local.demo.beside.hcp", lambda words: ["sh", "-c", *words])
    step = Step("Good", [f"sleep 3600 & echo $! > {tmp_path}/pid"])
    with Beside(tmp_path, lambda _: None, []) as beside:
        beside.start(step, Position(0, [step]))
        beside.wait()
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_step_in_front_ends_when_one_beside_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hcp.local.demo.run.hcp", lambda words: ["sleep", *words])
    bad, long = Step("Bad", ["local", "no-such-command"]), Step("Long", ["3600"])
    with Beside(tmp_path, lambda _: None, []) as beside:
        beside.start(bad, Position(0, [bad, long]))
        with pytest.raises(HcpError, match="Step 1, 'Bad'"):
            demo._step(long, lambda _: None, [], Position(1, [bad, long]), beside)


def test_a_step_beside_others_ends_with_the_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hcp.local.demo.beside.hcp", lambda words: ["sleep", *words])
    with pytest.raises(KeyboardInterrupt), Beside(tmp_path, lambda _: None, []) as beside:
        step = Step("Long", ["3600"])
        beside.start(step, Position(0, [step]))
        child = beside._running[0].child
        raise KeyboardInterrupt
    assert child.poll() is not None


def test_parts_that_could_not_be_built_are_named_with_the_last_lines_and_what_to_do(tmp_path: Path) -> None:
    tour = replace(TOUR, folder=tmp_path)
    (tmp_path / "build.log").write_text("begun\nthe disk is full\n")
    with subprocess.Popen(["false"]) as build, pytest.raises(HcpError, match="the disk is full") as raised:
        demo._await_build(build, tour, lambda _: None, [])
    assert raised.value.hint == "What was built stays: run `make demo` again and it continues here."


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
