"""A node pool's wait in words a person needs."""

from __future__ import annotations

from typing import Any

import pytest

from hcp.cli.engine.terminal import red
from hcp.cli.shared import health, machine_messages, progress
from hcp.nodepool.aggregate import machines_summary

Object = dict[str, Any]


def machine(name: str, **conditions: tuple[str, str, str]) -> Object:
    entries = [{"type": k, "status": s, "reason": r, "message": m} for k, (s, r, m) in conditions.items()]
    return {"metadata": {"name": name}, "status": {"conditions": entries}}


def pool(*machines: Object, **more: tuple[str, str, str]) -> Object:
    """As the operator reports these machines."""
    conditions = [{"type": k, "status": s, "reason": r, "message": m} for k, (s, r, m) in more.items()]
    sources = {
        "AllMachinesReady": ("Ready", "WaitingForInfrastructure"),
        "AllNodesHealthy": ("NodeHealthy", "WaitingForNodeRef"),
    }
    for kind, (source, missing) in sources.items():
        found = machines_summary(machines, source, "ready", missing)
        conditions.append({"type": kind, "status": str(found.ok), "reason": found.reason, "message": found.message})
    return {
        "metadata": {"name": "demo"},
        "spec": {"replicas": max(len(machines), 1)},
        "status": {"replicas": 0, "conditions": conditions},
    }


DUMP = "VM not ready: " + "Guest VM is not reported as running; " * 20


def test_machines_are_counted_by_how_far_they_are() -> None:
    made = pool(
        machine("a", Ready=("False", "DVNotReady", "DataVolume a-rhcos is not ready; phase: ImportInProgress")),
        machine("b", Ready=("False", "VMNotReady", DUMP)),
        machine("c", Ready=("True", "", ""), NodeHealthy=("False", "NodeProvisioning", "")),
        machine("d", Ready=("True", "", "")),
    )
    expected = "node pool demo: 0 of 4 nodes (1 getting the boot disk, 1 starting, 2 booting)"
    assert machine_messages.pool_line(made) == expected
    assert machine_messages.trouble_of(made) == ""


def test_a_node_that_is_there_and_not_ready() -> None:
    text = "Node condition Ready is False. " * 10
    made = pool(machine("a", Ready=("True", "", ""), NodeHealthy=("False", "NodeConditionsFailed", text)))
    assert machine_messages.wait_of(made) == "1 node not ready yet"


def test_reasons_nobody_knows_are_read_aloud() -> None:
    made = pool(machine("a", Ready=("False", "WaitingForTheMoon", DUMP)))
    assert machine_messages.wait_of(made) == "1 waiting for the moon"
    assert machine_messages.words("DVPending") == "dv pending"


def test_no_machines_yet() -> None:
    assert machine_messages.wait_of(pool()) == "no machine yet"


@pytest.mark.parametrize(
    ("reason", "text", "stage", "advice"),
    [
        ("VMNotReady", "0/1 nodes are available: 1 Insufficient memory. " * 5, "no room for it", "--memory"),
        ("DVImagePullFailed", "manifest unknown", "boot disk cannot be fetched", "pull secret"),
    ],
)
def test_what_waiting_does_not_heal_is_named_with_what_to_do(reason: str, text: str, stage: str, advice: str) -> None:
    told = machine_messages.trouble_of(pool(machine("a", Ready=("False", reason, text))))
    assert told.startswith(f"machine a: {stage} ({text[:20]}")
    assert advice in told
    assert len(told) < 300


def test_a_mistake_in_the_spec_goes_before_what_machines_say() -> None:
    made = pool(machine("a"), ValidPlatformConfig=("False", "ValidationFailed", "no storage class nope\nmore"))
    assert machine_messages.wait_of(made) == "ValidationFailed: no storage class nope"
    assert "correct its spec" in machine_messages.trouble_of(made)


def test_a_cluster_with_a_bad_release_is_in_trouble_and_a_starting_one_is_not() -> None:
    def cluster(status: str, reason: str) -> Object:
        item = {"type": "ValidReleaseImage", "status": status, "reason": reason, "message": "no such image"}
        return {"metadata": {"name": "demo"}, "status": {"conditions": [item]}}

    assert "no such image" in health.cluster_trouble(cluster("False", "InvalidImage"))
    assert health.cluster_trouble(cluster("Unknown", "StatusUnknown")) == ""
    assert health.cluster_trouble(cluster("True", "AsExpected")) == ""


def test_trouble_is_told_once_and_only_when_it_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("hcp.cli.shared.progress.time.monotonic", lambda: now[0])
    steady = progress.Steady(5.0)
    told = []
    for moment, text in ((0, "a"), (3, "a"), (4, ""), (5, "b"), (9, "b"), (10, "b"), (30, "b"), (31, ""), (32, "b")):
        now[0] = float(moment)
        told.append(steady.news(text))
    assert [text for text in told if text] == ["b"]


def test_colours_only_on_a_terminal_and_only_where_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert red("x") == "x"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert red("x") == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert red("x") == "x"
