"""What doctor says about machines that have to leave infra nodes."""

from __future__ import annotations

from typing import Any

from hcp.preflight.evacuation import finding

Object = dict[str, Any]


def pool(kind: str = "", status: str = "True", reason: str = "", message: str = "") -> Object:
    told = [{"type": kind, "status": status, "reason": reason, "message": message}] if kind else []
    return {"metadata": {"namespace": "teams", "name": "demo"}, "status": {"conditions": told}}


def test_nothing_leaves() -> None:
    assert finding([]).state == "ok"
    assert finding([pool()]).message == "no machine has to"


def test_machines_that_could_not_move_are_named_before_anything_is_drained() -> None:
    found = finding([pool("KubeVirtNodesLiveMigratable", "False")])
    assert (found.state, "teams/demo could not move" in found.message) == ("ok", True)


def test_what_goes_on_by_itself_is_told_and_what_waits_is_a_warning() -> None:
    kind = "NodesUnderEvacuation"
    moves = finding([pool(kind, reason="MigratingAndReplacing", message="Node a moves\nNode b goes")])
    assert (moves.state, moves.message) == ("ok", "teams/demo: Node a moves; teams/demo: Node b goes")
    failed = finding([pool(kind, reason="MigratingAndMigrationFailed", message="Node a: no room")])
    assert (failed.state, failed.message) == ("warning", "teams/demo: Node a: no room")
