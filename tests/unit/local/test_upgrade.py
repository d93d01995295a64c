"""Where an embedded cluster may move to, and that single processes are exchanged and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from hcp.local.lifecycle.upgrade import CONTROL_PLANE, ON_NODES, differing, problem
from hcp.local.state import parts
from hcp.local.state.layout import Layout
from hcp.local.state.spec import DEFAULT_KUBERNETES, Spec
from hcp.local.supervisor.processes import Process, dump

KNOWN = ["1.34", "1.35", "1.36", "1.37"]


@pytest.mark.parametrize(
    ("current", "wanted", "why"),
    [
        ("1.36", "1.36", ""),
        ("1.36", "1.37", ""),
        ("1.35", "1.37", "upgrade to 1.36 first"),
        ("1.36", "1.35", "too new for an older one"),
        ("1.36", "1.38", "there are: 1.34, 1.35, 1.36, 1.37"),
        ("1.36", "nonsense", "there are: "),
    ],
)
def test_it_goes_one_minor_at_a_time_and_never_back(current: str, wanted: str, why: str) -> None:
    said = problem(current, wanted, KNOWN)
    assert why in said
    assert bool(said) == bool(why)


def test_minors_that_can_be_had_are_sorted_as_versions_and_hold_the_default() -> None:
    found = parts.minors()
    assert DEFAULT_KUBERNETES in found
    assert found == sorted(found, key=lambda one: int(one.partition(".")[2]))


def test_a_cluster_runs_the_minor_that_it_is_remembered_with() -> None:
    assert "kubernetes-1.35" in parts.process_components(Spec("a", "api", kubernetes="1.35"))
    assert "kubernetes-1.36" in parts.process_components(Spec("a", "api"))


def test_the_api_server_is_exchanged_before_all_that_ask_it() -> None:
    order = [name for stage in (*CONTROL_PLANE, ON_NODES) for name in stage]
    assert order.index("kube-apiserver") < min(order.index(one) for one in order[2:])


def test_only_what_runs_otherwise_is_exchanged(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.make()
    layout.processes.write_text(dump([Process("etcd", ["etcd"]), Process("kube-apiserver", ["old"])]))
    wanted = [Process("etcd", ["etcd"]), Process("kube-apiserver", ["new"]), Process("later", ["x"])]
    assert differing(layout, wanted, ("etcd", "kube-apiserver", "later")) == ["kube-apiserver"]
    assert differing(layout, wanted, ("etcd",)) == []


def test_the_help_teaches() -> None:
    from hcp.cli.local.upgrade import COMMAND

    assert "one minor at a time" in COMMAND.long
    assert COMMAND.examples
