"""When everything is stored anew: after a control plane has reached another minor, and then only."""

from __future__ import annotations

from typing import Any

import pytest

from hcp.guest.migration import Told
from hcp.guest.migration_record import Move
from hcp.hostedcluster.storage_move import verdict, wanted


def history(*entries: tuple[str, str]) -> dict[str, Any]:
    """Newest first: version and state; each began at the time of its place from the end."""
    made = [
        {"version": version, "state": state, "startedTime": f"t{len(entries) - at}"}
        for at, (version, state) in enumerate(entries)
    ]
    return {"controlPlaneVersion": {"history": made}}


DONE, PART = "Completed", "Partial"


@pytest.mark.parametrize(
    "entries",
    [
        (),
        (("1.36.3", DONE),),
        (("1.36.3", PART),),
        (("1.36.3", DONE), ("1.36.2", DONE)),
        (("1.37.1", PART), ("1.36.3", DONE)),
        (("nightly", DONE), ("1.36.3", DONE)),
    ],
)
def test_nothing_is_asked_for_without_another_minor_that_was_reached(entries: tuple[tuple[str, str], ...]) -> None:
    assert wanted(history(*entries)) is None
    assert wanted(None) is None


def test_a_new_minor_is_asked_for_from_the_one_before() -> None:
    assert wanted(history(("1.36.3", DONE), ("1.35.4", DONE))) == Move("1.36", "1.36@t2", "1.35")


def test_a_patch_release_after_it_asks_for_nothing_more() -> None:
    first = wanted(history(("1.36.1", DONE), ("1.35.4", DONE)))
    assert wanted(history(("1.36.3", DONE), ("1.36.2", PART), ("1.36.1", DONE), ("1.35.4", DONE))) == first


def test_the_same_minor_once_more_is_another_arrival() -> None:
    """Somebody tried a newer one and went back: it may have stored objects its way."""
    found = wanted(history(("1.36.3", DONE), ("1.37.1", PART), ("1.36.3", DONE), ("1.35.4", DONE)))
    assert found == Move("1.36", "1.36@t4", "")


def test_releases_of_openshift_count_by_the_kubernetes_in_them() -> None:
    found = wanted(history(("4.21.0", DONE), ("4.20.3", DONE)))
    assert found is not None
    assert (found.minor, found.before) == ("1.34", "1.33")


def test_the_condition_says_what_is_left() -> None:
    assert verdict(Told("1.36", True))[:2] == (True, "AsExpected")
    assert verdict(Told("1.36", False))[:2] == (False, "Migrating")
    status, reason, message = verdict(Told("1.36", False, "things: a webhook says no"))
    assert (status, reason) == (False, "ObjectsRefused")
    assert "a webhook says no" in message
