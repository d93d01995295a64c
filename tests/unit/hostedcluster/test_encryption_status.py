"""The status of a change of the encryption key."""

from __future__ import annotations

from typing import Any

from hcp.hostedcluster.encryption_status import advance

Object = dict[str, Any]


def walk(before: Object | None, fingerprint: str, *states: str, at: int = 0) -> Object:
    for number, state in enumerate(states):
        now = f"2026-01-01T00:00:{at + number:02}Z"
        before = advance(before, secret=f"key-{fingerprint}", fingerprint=fingerprint, state=state, now=now)
    assert before is not None
    return before


def test_the_first_key_is_the_active_one_and_has_no_history() -> None:
    found = walk(None, "a", "Completed", "Completed")
    assert found == {"activeKey": {"provider": "AESCBC", "aescbc": {"secret": {"name": "key-a"}, "dataHash": "a"}}}


def test_a_change_goes_through_its_states_and_ends_with_the_new_key() -> None:
    first = walk(None, "a", "Completed")
    begun = walk(first, "b", "ReadOnlyDeploy", "ReadOnlyDeploy", at=1)
    assert begun["activeKey"]["aescbc"]["dataHash"] == "a"
    assert begun["targetKey"]["aescbc"]["secret"] == {"name": "key-b"}
    assert [entry["state"] for entry in begun["history"]] == ["ReadOnlyDeploy"]
    done = walk(begun, "b", "WritePromote", "Migrating", "Completed", "Completed", at=3)
    assert done["activeKey"]["aescbc"]["dataHash"] == "b"
    assert "targetKey" not in done
    [entry] = done["history"]
    assert (entry["from"]["fingerprint"], entry["to"]["fingerprint"], entry["state"]) == ("a", "b", "Completed")
    assert (entry["startedTime"], entry["completionTime"]) == ("2026-01-01T00:00:01Z", "2026-01-01T00:00:05Z")


def test_another_key_in_the_middle_interrupts() -> None:
    half = walk(walk(None, "a", "Completed"), "b", "ReadOnlyDeploy", "WritePromote", at=1)
    found = walk(half, "c", "ReadOnlyDeploy", at=5)
    assert [(e["to"]["fingerprint"], e["state"]) for e in found["history"]] == [
        ("c", "ReadOnlyDeploy"),
        ("b", "Interrupted"),
    ]
    back = walk(found, "a", "Completed", at=9)
    assert [e["state"] for e in back["history"]] == ["Interrupted", "Interrupted"]
    assert back["activeKey"]["aescbc"]["dataHash"] == "a"


def test_five_changes_are_remembered() -> None:
    found: Object | None = None
    for number in range(8):
        found = walk(found, str(number), "Migrating", "Completed")
    assert found is not None
    assert [entry["to"]["fingerprint"] for entry in found["history"]] == ["7", "6", "5", "4", "3"]
